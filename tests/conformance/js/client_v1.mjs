// A client of @a2a-js/sdk 1.x: `node client_v1.mjs URL [JSONRPC|HTTP+JSON]`. Prints one line of JSON a check.
import { randomUUID } from 'node:crypto';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { check, finish } from './checks.mjs';

const [url, binding = 'JSONRPC'] = process.argv.slice(2);
const transports = { JSONRPC: JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
const client = await new ClientFactory({
  transports: [new transports[binding]()],
  preferredTransports: [binding],
}).createFromUrl(url);

const ask = (text, more = {}, configuration = undefined) => ({
  tenant: '',
  metadata: {},
  configuration,
  message: {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: {}, filename: '', mediaType: '' }],
    contextId: '',
    taskId: '',
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
    ...more,
  },
});
const textOf = (task) => task.artifacts.flatMap((each) => each.parts).map((part) => part.content.value).join('');

let task;
await check('sendMessage', async () => {
  const answer = await client.sendMessage(ask('Hello from JavaScript.'));
  task = answer.payload?.value ?? answer;
  if (task.status.state !== TaskState.TASK_STATE_COMPLETED) throw new Error(JSON.stringify(task));
  if (!textOf(task).includes('Hello from JavaScript.')) throw new Error(textOf(task));
});
await check('getTask', async () => {
  const found = await client.getTask({ tenant: '', id: task.id, historyLength: 10 });
  if (found.id !== task.id || !found.history.length) throw new Error(JSON.stringify(found));
});
await check('sendMessageStream', async () => {
  const kinds = [];
  let last;
  for await (const event of client.sendMessageStream(ask('Streamed.'))) {
    kinds.push((event.payload ?? event).$case ?? event.kind);
    last = event;
  }
  if (kinds[0] !== 'task' || kinds.length < 3) throw new Error(kinds.join());
  const { status } = (last.payload ?? last).value;
  if (status.state !== TaskState.TASK_STATE_COMPLETED) throw new Error(JSON.stringify(last));
});
await check('listTasks', async () => {
  const page = await client.listTasks({
    tenant: '', contextId: task.contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: '', pageSize: 1,
  });
  if (page.tasks.length !== 1 || page.totalSize < 1) throw new Error(JSON.stringify(page));
});
await check('sendMessage on a task that has ended is an error', async () => {
  const error = await client.sendMessage(ask('More.', { taskId: task.id })).catch((caught) => caught);
  if (!(error instanceof Error)) throw new Error(JSON.stringify(error));
  return error.name;
});
await check('cancelTask on a task that has ended is an error', async () => {
  const error = await client.cancelTask({ tenant: '', id: task.id, metadata: {} }).catch((caught) => caught);
  if (!(error instanceof Error)) throw new Error(JSON.stringify(error));
  return error.name;
});
await check('cancelTask', async () => {
  const sent = await client.sendMessage(ask('%%slow:20%%', {}, { acceptedOutputModes: [], returnImmediately: true }));
  const open = sent.payload?.value ?? sent;
  const canceled = await client.cancelTask({ tenant: '', id: open.id, metadata: {} });
  if (canceled.status.state !== TaskState.TASK_STATE_CANCELED) throw new Error(JSON.stringify(canceled));
});
finish();

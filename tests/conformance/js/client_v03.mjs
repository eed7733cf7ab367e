// A client of @a2a-js/sdk 0.3.x: `node client_v03.mjs URL [JSONRPC|HTTP+JSON]`. Prints one line of JSON a check.
import { randomUUID } from 'node:crypto';
import { ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { check, finish } from './checks.mjs';

const [url, binding = 'JSONRPC'] = process.argv.slice(2);
const transports = { JSONRPC: JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
const client = await new ClientFactory({
  transports: [new transports[binding]()],
  preferredTransports: [binding],
}).createFromUrl(url);

const ask = (text, more = {}, configuration = { blocking: true }) => ({
  configuration,
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...more },
});
const textOf = (task) => task.artifacts.flatMap((each) => each.parts).map((part) => part.text).join('');

let task;
await check('sendMessage', async () => {
  task = await client.sendMessage(ask('Hello from JavaScript.'));
  if (task.kind !== 'task' || task.status.state !== 'completed') throw new Error(JSON.stringify(task));
  if (!textOf(task).includes('Hello from JavaScript.')) throw new Error(textOf(task));
});
await check('getTask', async () => {
  const found = await client.getTask({ id: task.id, historyLength: 10 });
  if (found.id !== task.id || !found.history.length) throw new Error(JSON.stringify(found));
});
await check('sendMessageStream', async () => {
  const events = [];
  for await (const event of client.sendMessageStream(ask('Streamed.'))) events.push(event);
  if (events[0].kind !== 'task' || events.length < 3) throw new Error(JSON.stringify(events));
  const last = events.at(-1);
  if (!last.final || last.status.state !== 'completed') throw new Error(JSON.stringify(last));
});
await check('cancelTask on a task that has ended is an error', async () => {
  const error = await client.cancelTask({ id: task.id }).catch((caught) => caught);
  if (!(error instanceof Error)) throw new Error(JSON.stringify(error));
  return error.name;
});
await check('cancelTask', async () => {
  const open = await client.sendMessage(ask('%%slow:20%%', {}, { blocking: false }));
  const canceled = await client.cancelTask({ id: open.id });
  if (canceled.status.state !== 'canceled') throw new Error(JSON.stringify(canceled));
});
finish();

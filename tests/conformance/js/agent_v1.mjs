// An agent of @a2a-js/sdk 1.x over JSON-RPC and REST: `node agent_v1.mjs PORT`. It answers in two chunks; `slow` takes
// seconds, `ask` asks first, `fail` fails, `message` is answered by a message alone. Prints its URL when it serves.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const port = Number(process.argv[2]);
const url = `http://127.0.0.1:${port}`;
const part = (text) => ({ content: { $case: 'text', value: text }, metadata: {}, filename: '', mediaType: 'text/plain' });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Executor {
  #canceled = new Set();

  execute = async ({ taskId, contextId, userMessage, task }, bus) => {
    const text = userMessage.parts.map((each) => each.content?.value ?? '').join('\n');
    const say = (words) => ({
      messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [part(words)], contextId, taskId,
      metadata: {}, extensions: [], referenceTaskIds: [],
    });
    if (text.startsWith('message')) {
      bus.publish(AgentEvent.message({ ...say(`Only a message: ${text}`), taskId: '' }));
      bus.finished();
      return;
    }
    const status = (state, words) => ({
      state, timestamp: new Date().toISOString(), message: words ? say(words) : undefined,
    });
    const tell = (state, words) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, words), metadata: {} }));
    if (!task) {
      bus.publish(AgentEvent.task({
        id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), artifacts: [], history: [userMessage], metadata: {},
      }));
    }
    tell(TaskState.TASK_STATE_WORKING);
    for (let left = text.startsWith('slow') ? 100 : 0; left && !this.#canceled.has(taskId); left -= 1) await sleep(100);
    if (this.#canceled.has(taskId)) {
      tell(TaskState.TASK_STATE_CANCELED);
    } else if (text.startsWith('ask') && !task) {
      tell(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which one?');
    } else if (text.startsWith('fail')) {
      tell(TaskState.TASK_STATE_FAILED, 'It did not work.');
    } else {
      const artifactId = randomUUID();
      for (const [at, words] of ['You said: ', text].entries()) {
        bus.publish(AgentEvent.artifactUpdate({
          taskId, contextId, append: at > 0, lastChunk: at > 0, metadata: {},
          artifact: { artifactId, name: 'answer', description: '', parts: [part(words)], metadata: {}, extensions: [] },
        }));
        await sleep(100);
      }
      tell(TaskState.TASK_STATE_COMPLETED);
    }
    bus.finished();
  };

  cancelTask = async (taskId) => {
    this.#canceled.add(taskId);
  };
}

const card = {
  name: 'JavaScript Agent',
  description: 'Answers with what it was told',
  version: '1.0.0',
  supportedInterfaces: [
    { url: `${url}/a2a/jsonrpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
    { url: `${url}/a2a/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
  ],
  capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{
    id: 'echo', name: 'Echo', description: 'Says it again', tags: ['test'],
    examples: [], inputModes: [], outputModes: [], securityRequirements: [],
  }],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.use('/a2a/rest', restHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1', () => console.log(url));

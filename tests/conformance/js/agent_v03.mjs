// An agent of @a2a-js/sdk 0.3.x over JSON-RPC: `node agent_v03.mjs PORT`. It answers as agent_v1.mjs does. Prints its URL
// when it serves.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const port = Number(process.argv[2]);
const url = `http://127.0.0.1:${port}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Executor {
  #canceled = new Set();

  execute = async ({ taskId, contextId, userMessage, task }, bus) => {
    const text = userMessage.parts.map((each) => each.text ?? '').join('\n');
    const say = (words) => ({
      kind: 'message', messageId: randomUUID(), role: 'agent', parts: [{ kind: 'text', text: words }], contextId,
    });
    if (text.startsWith('message')) {
      bus.publish(say(`Only a message: ${text}`));
      bus.finished();
      return;
    }
    const status = (state, words) => ({
      state, timestamp: new Date().toISOString(), ...(words ? { message: { ...say(words), taskId } } : {}),
    });
    const tell = (state, final, words) =>
      bus.publish({ kind: 'status-update', taskId, contextId, status: status(state, words), final });
    if (!task) bus.publish({ kind: 'task', id: taskId, contextId, status: status('submitted'), history: [userMessage] });
    tell('working', false);
    for (let left = text.startsWith('slow') ? 100 : 0; left && !this.#canceled.has(taskId); left -= 1) await sleep(100);
    if (this.#canceled.has(taskId)) {
      tell('canceled', true);
    } else if (text.startsWith('ask') && !task) {
      tell('input-required', true, 'Which one?');
    } else if (text.startsWith('fail')) {
      tell('failed', true, 'It did not work.');
    } else {
      const artifactId = randomUUID();
      for (const [at, words] of ['You said: ', text].entries()) {
        bus.publish({
          kind: 'artifact-update', taskId, contextId, append: at > 0, lastChunk: at > 0,
          artifact: { artifactId, name: 'answer', parts: [{ kind: 'text', text: words }] },
        });
        await sleep(100);
      }
      tell('completed', true);
    }
    bus.finished();
  };

  cancelTask = async (taskId) => {
    this.#canceled.add(taskId);
  };
}

const card = {
  name: 'JavaScript Agent of 0.3',
  description: 'Answers with what it was told',
  protocolVersion: '0.3.0',
  version: '1.0.0',
  url: `${url}/a2a/jsonrpc`,
  preferredTransport: 'JSONRPC',
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'echo', name: 'Echo', description: 'Says it again', tags: ['test'] }],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1', () => console.log(url));

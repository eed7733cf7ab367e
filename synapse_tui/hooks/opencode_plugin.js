// The hooks of opencode: asks the host of the agent over its Unix socket, in the words of `synapse hook`.
// Outside a hosted agent, or when the host does not answer in time, it says nothing.
import { existsSync, lstatSync } from "node:fs"
import { connect } from "node:net"
import { basename } from "node:path"

const AGENT = process.env.SYNAPSE_AGENT_ID
const PLACE = process.env.SYNAPSE_HOOKS
const PATIENCE = 2000

// Where the host listens: in /tmp, if its folder was deleted and cannot be made again. Anyone can make a folder
// there, so it must be private.
function place() {
  if (existsSync(PLACE)) return PLACE
  const folder = `/tmp/synapse-tui-${process.getuid()}`
  const status = lstatSync(folder, { throwIfNoEntry: false })
  const ours = status?.isDirectory() && status.uid === process.getuid() && !(status.mode & 0o077)
  return ours ? `${folder}/${basename(PLACE)}` : PLACE
}

function ask(event, told) {
  return new Promise((resolve) => {
    const parts = []
    const socket = connect({ path: place() })
    const finish = (text) => {
      clearTimeout(timer)
      socket.destroy()
      try {
        resolve(text ? JSON.parse(text) : {})
      } catch {
        resolve({})
      }
    }
    const timer = setTimeout(() => finish(""), PATIENCE)
    socket.on("error", () => finish(""))
    socket.on("data", (part) => parts.push(part))
    socket.on("end", () => finish(Buffer.concat(parts).toString("utf8")))
    const body = Buffer.from(JSON.stringify(told))
    // Never end(): the runtime of opencode would read no answer after it.
    socket.write(`${event} opencode ${AGENT} ${body.length}\n`)
    socket.write(body)
  })
}

// How long npm was to try was meant for opencode's own start, not for what the agent's shell runs.
for (const name of (process.env.SYNAPSE_NPM ?? "").split(" ")) delete process.env[name]
delete process.env.SYNAPSE_NPM

export const Synapse = async ({ directory }) => {
  if (!AGENT || !PLACE) return {}
  // Sessions of subagents: the agent's own turn goes on while they are given prompts and come to an end.
  const children = new Set()
  const tell = (event, told) => ask(event, { directory, ...told })
  await tell("start", {})
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await tell("pre", { tool: input.tool, callID: input.callID, args: output.args })
      if (answer.deny) throw new Error(answer.reason)
    },
    "tool.execute.after": async (input, output) => {
      const told = { tool: input.tool, callID: input.callID, args: input.args, metadata: output.metadata }
      const answer = await tell("post", told)
      if (answer.context) output.output += `\n\n${answer.context}`
    },
    "chat.message": async (input, output) => {
      if (children.has(input.sessionID)) return
      const text = (output.parts ?? []).map((part) => part.text ?? "").join("\n")
      const answer = await tell("prompt", { prompt: text })
      const last = (output.parts ?? []).findLast((part) => part.type === "text" && !part.synthetic)
      if (answer.context && last) last.text += `\n\n${answer.context}`
    },
    event: async ({ event }) => {
      const { info, sessionID } = event.properties ?? {}
      if (event.type === "session.created" && info?.parentID) children.add(info.id)
      if (event.type === "permission.asked") await tell("asked", {})
      const over = event.type === "session.idle" || event.type === "session.error"
      if (over && !children.has(sessionID)) await tell("idle", {})
    },
    dispose: async () => {
      await tell("end", {})
    },
  }
}

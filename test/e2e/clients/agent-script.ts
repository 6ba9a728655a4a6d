import { expect } from 'vitest'
import { pixel } from './sdk-conversations.ts'
import { expectPaired } from './sdk-grid.ts'
import { type Body, type FakeProvider, type Reply, turn } from './sdk-wire.ts'

/** The calls of a coding agent: messages, tool results, turns, interruptions and a compaction of its history. */
export type Agent = {
  say(text: string, picture?: string): void
  answer(results: Result[]): void
  /** Requests the next turn, streamed, and appends it to the history. */
  next(): Promise<{ text: string; calls: { id: string; name: string; arguments: unknown }[] }>
  /** Requests a turn, and disconnects after the first texts; appends them to the history, and replies to them. */
  interrupted(): Promise<string>
  /** Forgets everything but a summary. */
  compact(summary: string): void
}

export type Result = { id: string; text: string; picture?: string; isError?: true }

/** Instructions of 20 kB. */
export const system = Array.from({ length: 200 }, (_, line) => {
  return `Rule ${line}: read a file before you change it, and run the tests after it — “é”, <tag attr="x">, \\n, {"a":1}.`.padEnd(
    100,
    '.',
  )
}).join('\n')

/** Fifteen tools, with schemas as agents have them. */
export const tools = ['read', 'write', 'edit', 'multi_edit', 'bash', 'bash_output', 'kill', 'glob', 'grep', 'ls']
  .concat(['web_fetch', 'todo_write', 'notebook_edit', 'task', 'mcp__git__log'])
  .map((name) => ({
    name,
    description: `The tool ${name}.\nUse it only when it is needed.`,
    schema: {
      type: 'object' as const,
      properties: {
        path: { type: 'string', description: 'An absolute path' },
        edits: {
          type: 'array',
          items: {
            type: 'object',
            properties: { old: { type: 'string' }, new: { type: 'string' } },
            required: ['old', 'new'],
          },
        },
        mode: { type: 'string', enum: ['text', 'image'] },
        limit: { type: 'integer', minimum: 1 },
      },
      required: ['path'],
    },
  }))

const call = (at: number, nth: number, name: string, more = {}) => ({
  id: `t${at}x${nth}`,
  name,
  arguments: { path: `/src/file-${at}-${nth}.ts`, ...more },
})
const odd = { edits: [{ old: 'a "b" \\ \n\t\u00e9 😀 </x>', new: '' }], limit: 1e6 }

/** The model's turns, by their position in a round of six. */
const rounds: ((at: number) => Reply)[] = [
  (at) => ({
    thought: `Thought ${at}.`,
    text: `I look at three files (${at}).`,
    calls: [call(at, 0, 'read'), call(at, 1, 'grep', { limit: 5 }), call(at, 2, 'mcp__git__log')],
  }),
  (at) => ({ thought: `Thought ${at}.`, calls: [call(at, 0, 'bash')] }),
  (at) => ({ calls: [call(at, 0, 'read', { mode: 'image' }), call(at, 1, 'ls')] }),
  (at) => ({ thought: `Thought ${at}.`, calls: [call(at, 0, 'multi_edit', odd)] }),
  (at) => ({ text: `I delete it (${at}).`, calls: [call(at, 0, 'bash')] }),
  (at) => ({ thought: `Thought ${at}.`, text: `Done with round ${at}.` }),
]

/** How the results of those calls look. */
const outcomes: ((at: number, ids: string[]) => Result[])[] = [
  (at, ids) => ids.map((id, nth) => ({ id, text: `result ${at}-${nth}` })),
  (at, [id = '']) => [{ id, text: `exit code 1 (${at})\nError: no such file`, isError: true }],
  (at, [drawn = '', id = '']) => [
    { id: drawn, text: `a picture (${at})`, picture: pixel },
    { id, text: '' },
  ],
  (at, [id = '']) => [{ id, text: `edited ${at} ${'x'.repeat(5_000)}` }],
  (at, [id = '']) => [{ id, text: `The user refused this (${at}).`, isError: true }],
  () => [],
]

const turns = 30
const interruptedAt = 11
const compactedAt = 17

/** The required content of a turn when it arrives. */
type Known = { role: 'user' | 'assistant'; text: string[]; calls: object[]; results: string[] }

/**
 * Plays the session and looks at every request that arrives, also with the `rule` of its provider; a model that does not see
 * gets no pictures. Answers the turns.
 */
export async function playSession(
  agent: Agent,
  provider: FakeProvider,
  rule: (body: Body) => void,
  sees = true,
): Promise<number> {
  let known: Known[] = []
  let thoughts: string[] = []
  let pictures = 0
  const knows = (role: Known['role'], reply: Partial<Known>) =>
    known.push({ role, text: [], calls: [], results: [], ...reply })
  const say = (text: string, picture?: string) => {
    agent.say(text, picture)
    knows('user', { text: [text] })
    if (picture && sees) pictures++
  }
  say('Make the tests pass.', pixel)
  for (let at = 0; at < turns; at++) {
    const round = at % rounds.length
    const reply = (rounds[round] as (at: number) => Reply)(at)
    if (at === interruptedAt) {
      provider.play('stay')
      knows('assistant', { text: [await agent.interrupted()] })
      expectHistory(provider, known.slice(0, -1), thoughts, pictures)
      say('[Request interrupted by user]')
      continue
    }
    provider.play(reply)
    const received = await agent.next()
    expectHistory(provider, known, thoughts, pictures)
    rule(provider.received[0]?.body)
    expect(received.text).toBe(reply.text ?? '')
    expect(received.calls).toMatchObject(
      (reply.calls ?? []).map(({ name, arguments: args }) => ({ name, arguments: args })),
    )
    knows('assistant', {
      text: reply.text ? [reply.text] : [],
      calls: (reply.calls ?? []).map(({ id: _, ...one }) => one),
    })
    if (reply.thought) thoughts.push(reply.thought)
    const results = (outcomes[round] as (at: number, ids: string[]) => Result[])(
      at,
      received.calls.map(({ id }) => id),
    )
    if (results.length > 0) {
      agent.answer(results)
      knows('user', { results: results.map(({ text }) => text) })
      if (sees) pictures += results.filter(({ picture }) => picture).length
    }
    if (round === 4) say(`No, leave it (${at}).`)
    if (round === 5) say(`And the next one (${at}).`, at > 20 ? pixel : undefined)
    if (at === compactedAt) {
      const summary = `This session goes on from another one. Summary: ${'we edited files. '.repeat(50)}`
      agent.compact(summary)
      known = [{ role: 'user', text: [summary], calls: [], results: [] }]
      thoughts = []
      pictures = 0
    }
  }
  return turns
}

/** The request that arrived has the whole history, in order, in the provider's own format, and nothing of the router. */
function expectHistory(provider: FakeProvider, known: Known[], thoughts: string[], pictures: number): void {
  expect(provider.received.length).toBe(1)
  const body = JSON.stringify(provider.received[0]?.body)
  const arrived = provider.arrived(0)
  expect(arrived.system).toContain(system)
  expect(arrived.tools).toEqual(tools.map(({ name }) => name))
  expectPaired(arrived)
  const expected = joinedKnown(known)
  expect(arrived.turns.map(({ role }) => role)).toEqual(expected.map(({ role }) => role))
  for (const [index, { text, calls, results }] of expected.entries()) {
    const found = arrived.turns[index] ?? turn('user', {})
    for (const words of text) expect(found.text).toContain(words)
    expect(found.calls).toMatchObject(calls)
    expect(found.results.map((result) => result.text)).toEqual(
      results.map((words) => expect.stringContaining(inJson(words, found.results))),
    )
  }
  for (const thought of thoughts) expect(body).toContain(provider.wire.thoughtSent(thought))
  expect(body.split(pixel).length - 1, 'pictures').toBe(pictures)
  expect(body).not.toContain('router1.')
}

/** Results that arrive as JSON have their line breaks escaped. */
function inJson(words: string, results: { text: string }[]): string {
  return results.some(({ text }) => text.startsWith('{')) ? JSON.stringify(words).slice(1, -1) : words
}

function joinedKnown(known: Known[]): Known[] {
  const all: Known[] = []
  for (const one of known) {
    const last = all.at(-1)
    if (last?.role !== one.role) all.push({ ...one })
    else
      Object.assign(last, {
        text: [...last.text, ...one.text],
        calls: [...last.calls, ...one.calls],
        results: [...last.results, ...one.results],
      })
  }
  return all
}

import { contentPolicy, contextLength, failureOf, noPrefill, overloaded, usedUp } from './failures.ts'
import { type Ask, healthy, type Plan, refusal, type Step, stepsOf, stepsUntil, withAnswer, withSteps } from './plan.ts'

/**
 * A way to behave. `name` is that of models; `<…>` in it are numbers, which `plan` gets in their order, and what stands in
 * brackets may be left out.
 */
type Fault = { name: string; about: string; plan(ask: Ask, ...numbers: number[]): Plan }

/** All that models of the simulator do, by name. Seconds are those of factor 1. */
export const faults: readonly Fault[] = [
  { name: 'ok', about: 'answers', plan: healthy },
  {
    name: '<status>-once[-retry-after-<seconds>]',
    about: 'an HTTP error with this status, the first time a caller asks',
    plan: (ask, status, seconds) => failing(ask, { status, seconds, times: 1 }),
  },
  {
    name: '<status>-<n>-times[-retry-after-<seconds>]',
    about: 'an HTTP error with this status, the first n times',
    plan: (ask, status, times, seconds) => failing(ask, { status, seconds, times }),
  },
  {
    name: '<status>-always[-retry-after-<seconds>]',
    about: 'an HTTP error with this status; 3xx is a redirect',
    plan: (ask, status, seconds) => failing(ask, { status, seconds }),
  },
  {
    name: 'quota',
    about: 'the credit is used up: 429 `insufficient_quota`, at Anthropic 400',
    plan: (ask) => refusal(ask, usedUp),
  },
  { name: 'context-length', about: '400, the prompt is too long', plan: (ask) => refusal(ask, contextLength) },
  { name: 'content-policy', about: '400, the content is refused', plan: (ask) => refusal(ask, contentPolicy) },
  {
    name: 'refuses-prefill',
    about: 'answers, but has 400 for conversations that end with the assistant',
    plan: (ask) => (ask.asked.prefill === '' ? healthy(ask) : refusal(ask, noPrefill)),
  },
  { name: 'reset-before-headers', about: 'the connection is reset before there is a response', plan: () => 'reset' },
  {
    name: 'reset-once',
    about: 'the same, the first time a caller asks',
    plan: (ask) => (ask.earlier === 0 ? 'reset' : healthy(ask)),
  },
  {
    name: 'reset-idle-connections',
    about: 'a connection that was kept is reset when it is used again',
    plan: (ask) => (ask.isReused ? 'reset' : healthy(ask)),
  },
  {
    name: 'down-for-<seconds>s',
    about: 'every connection is reset for so long after the first request; the control endpoint says it of any model',
    plan: (ask, seconds = 0) => (ask.sinceFirst < seconds * 1_000 ? 'reset' : healthy(ask)),
  },
  {
    name: 'silent-<seconds>s',
    about: 'not even headers for so long; then the answer',
    plan: (ask, seconds = 0) => withSteps(ask, stepsOf(ask), { before: [{ wait: seconds * 1_000 }] }),
  },
  {
    name: 'first-token-after-<seconds>s',
    about: 'a stream opens at once, and has its first token so much later',
    plan: (ask, seconds = 0) => late(ask, [{ wait: seconds * 1_000 }]),
  },
  {
    name: 'pings-for-<seconds>s',
    about: 'a stream opens at once, and has nothing but pings, one each 5 s, for so long',
    plan: (ask, seconds = 0) =>
      late(ask, Array.from({ length: seconds / 5 }, () => [ask.format.ping, { wait: 5_000 }]).flat()),
  },
  {
    name: 'token-each-<n>ms',
    about: 'a stream has a token each n milliseconds; a whole answer comes when they would all have come',
    plan: (ask, ms = 0) => {
      const waits = ask.answer.pieces.map(() => ({ wait: ms }))
      if (!ask.stream) return withSteps(ask, stepsOf(ask), { before: waits })
      const { opening, pieces, closing, finish, done } = ask.stream
      return withSteps(ask, [
        ...opening,
        ...pieces.flatMap((piece) => [piece, { wait: ms }]),
        ...closing,
        ...finish,
        ...done,
      ])
    },
  },
  {
    name: 'cut-after-<tokens>',
    about: 'the connection breaks after so many tokens; after 0 a stream has been opened',
    plan: (ask, tokens = 0) => withSteps(ask, [...stepsUntil(ask, tokens), 'cut']),
  },
  {
    name: 'ends-after-<tokens>',
    about: 'the response ends properly after so many tokens, without a finish reason',
    plan: (ask, tokens = 0) => withSteps(ask, stepsUntil(ask, tokens)),
  },
  {
    name: 'silent-after-<tokens>',
    about: 'nothing more comes after so many tokens',
    plan: (ask, tokens = 0) => withSteps(ask, [...stepsUntil(ask, tokens), 'silent']),
  },
  {
    name: 'error-after-<tokens>',
    about:
      'a stream with status 200 has an error as an event after so many tokens; a whole answer is one with status 200',
    plan: (ask, tokens = 0) => withSteps(ask, [...(ask.stream ? stepsUntil(ask, tokens) : []), reported(ask)]),
  },
  {
    name: 'error-first',
    about: 'the same before anything else',
    plan: (ask) => withSteps(ask, [reported(ask)]),
  },
  {
    name: 'bad-json-at-<n>',
    about: 'the nth event is broken JSON, and its token is lost; a whole answer is broken',
    plan: (ask, at = 1) => withSteps(ask, broken(ask, at)),
  },
  {
    name: 'garbage',
    about: 'a response with status 200 that is not JSON and has no events',
    plan: (ask) => withSteps(ask, ['<html><body>It works!</body></html>']),
  },
  { name: 'empty', about: 'a response with status 200 and no body', plan: (ask) => withSteps(ask, []) },
  {
    name: 'no-done',
    about: 'a stream ends after its finish reason and its usage, without a terminator',
    plan: (ask) => withSteps(ask, untilDone(ask)),
  },
  {
    name: 'no-done-and-open',
    about: 'the same, and the connection stays open',
    plan: (ask) => withSteps(ask, ask.stream ? [...untilDone(ask), 'silent'] : stepsOf(ask)),
  },
  {
    name: 'reset-after-done',
    about: 'the connection breaks after the whole answer',
    plan: (ask) => withSteps(ask, ask.stream ? [...stepsOf(ask), 'cut'] : stepsOf(ask)),
  },
  { name: 'double-finish', about: 'a stream has its finish reason twice', plan: twice },
  {
    name: 'json-for-stream',
    about: 'a JSON document in place of a stream',
    plan: (ask) => healthy({ ...ask, stream: undefined }),
  },
  {
    name: 'events-as-json',
    about: 'events that are labelled as JSON',
    plan: (ask) => relabelled(ask, 'application/json'),
  },
  {
    name: 'events-as-text',
    about: 'events that are labelled as text',
    plan: (ask) => relabelled(ask, 'text/plain'),
  },
  {
    name: 'usage-missing',
    about: 'answers without usage',
    plan: (ask) => {
      const { usage, ...answer } = ask.answer
      return healthy(withAnswer(ask, answer))
    },
  },
  { name: 'unpriced', about: 'answers; for gateways that have no price for this name', plan: healthy },
]

const compiled = faults.map(({ name, plan }) => ({ plan, pattern: new RegExp(`^${patternOf(name)}$`) }))

/** What a model does, by its name; after a `~` it may have any suffix. Undefined if there is no such fault. */
export function behaviourOf(model: string): ((ask: Ask) => Plan) | undefined {
  const [name = ''] = model.split('~')
  for (const { pattern, plan } of compiled) {
    const found = pattern.exec(name)
    if (found)
      return (ask) => plan(ask, ...found.slice(1).flatMap((text) => (text === undefined ? [] : [Number(text)])))
  }
  return undefined
}

function patternOf(name: string): string {
  return name.replace('[', '(?:').replace(']', ')?').replace(/<\w+>/g, '(\\d+)')
}

function failing(
  ask: Ask,
  fails: { status?: number | undefined; seconds?: number | undefined; times?: number | undefined },
): Plan {
  const { status = 500, seconds, times = Number.POSITIVE_INFINITY } = fails
  return ask.earlier < times ? refusal(ask, failureOf(status), seconds) : healthy(ask)
}

/** Streams wait after their opening, whole answers before their headers. */
function late(ask: Ask, steps: Step[]): Plan {
  if (!ask.stream) return withSteps(ask, stepsOf(ask), { before: steps.filter((step) => typeof step === 'object') })
  const { opening, ...others } = ask.stream
  return withSteps(ask, [...opening, ...steps, ...stepsOf({ ...ask, stream: { ...others, opening: [] } })])
}

function reported({ stream, format }: Ask): Step {
  return stream ? format.errorEvent(overloaded) : JSON.stringify(format.error(overloaded).body)
}

function broken(ask: Ask, at: number): Step[] {
  const steps = stepsOf(ask) as string[]
  const index = ask.stream ? at - 1 : 0
  return steps.map((text, place) => (place === index ? `${text.trimEnd().slice(0, -4)}\n\n` : text))
}

function untilDone(ask: Ask): Step[] {
  return ask.stream ? stepsOf({ ...ask, stream: { ...ask.stream, done: [] } }) : stepsOf(ask)
}

function twice(ask: Ask): Plan {
  if (!ask.stream) return healthy(ask)
  const { finish } = ask.stream
  return healthy({ ...ask, stream: { ...ask.stream, finish: [...finish, ...finish] } })
}

function relabelled(ask: Ask, type: string): Plan {
  const plan = healthy(ask)
  return plan === 'reset' || !ask.stream ? plan : { ...plan, headers: { 'content-type': type } }
}

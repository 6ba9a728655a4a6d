/** What the caller of one cell must see. */
export type Expectation = {
  /** Any of these: the whole answer; one that lacks the token of a damaged event; a clean error. */
  answer: readonly Outcome[]
  /** The statuses that an error may have where nothing was sent before it. */
  status?: readonly number[]
  /** An error says when to try again. */
  retryAfter?: true
  /** How many requests the first and the second target get: the least and the most. */
  first: Range
  second?: Range
  /** The longest that it may take. Seconds at factor 1. */
  seconds?: number
  /** More than one provider has said a part of the answer. */
  parts?: true
}

export type Outcome = 'complete' | 'damaged' | 'error'
export type Range = readonly [least: number, most: number]

/** Nothing is shown before the answer is whole; the second target goes on with the text; it begins again. */
export type OnCut = 'hold' | 'continue' | 'restart'

/** What is the same for streams and for whole answers, or for each. */
export type Expected = Expectation | { streamed: Expectation; whole: Expectation }

/**
 * One fault, and what callers must see of it. `first` and `second` are the models of the simulator that a gateway asks in this
 * order; the second answers unless it says otherwise.
 */
export type Scenario = {
  name: string
  about: string
  first: string
  second?: string
  two: Expected
  one: Expected
  /** Calls are made for longer than the outage of the first target, and not once. */
  outage?: { every: number; lasts: number; backWithin: number; mostProbes: number }
  /** What else holds for streams with two targets where a gateway does something about streams that break off. */
  onCut?: { [what in OnCut]: Partial<Expectation> }
  /** What is counted may be an estimate. */
  estimated?: true
}

/** Attempts on one target, with those that are made again. */
const once: Range = [1, 1]
const few: Range = [1, 3]
const none: Range = [0, 0]
const perhaps: Range = [0, 1]

const outOfOrder = [500, 502, 503, 504, 529]
const complete: Expectation = { answer: ['complete'], first: few, second: once }
const alone: Expectation = { answer: ['complete'], first: few, second: none }
const down: Expectation = { answer: ['error'], status: outOfOrder, first: [1, 6] }
/** Text was shown before the failure. */
const afterText: Expectation = { answer: ['complete', 'error'], first: few, second: perhaps }

/** What is whole all the same. */
const recovered = {
  hold: { answer: ['complete'], second: once },
  continue: { answer: ['complete'], second: once, parts: true },
  restart: { answer: ['complete'], second: once, parts: true },
} as const

/** The sixteen faults that every gateway meets sooner or later. */
export const classic: readonly Scenario[] = [
  {
    name: '429-once',
    about: '429 with Retry-After, once',
    first: '429-once-retry-after-1',
    two: { ...complete, first: once, seconds: 5 },
    one: { ...alone, first: [2, 2], seconds: 10 },
  },
  {
    name: '429-always',
    about: '429 for ever',
    first: '429-always-retry-after-1',
    two: { ...complete, first: once },
    one: { answer: ['error'], status: [429], retryAfter: true, first: few },
  },
  {
    name: '500-once',
    about: '500, once',
    first: '500-once',
    two: { ...complete, second: perhaps },
    one: { ...alone, first: [2, 2] },
  },
  { name: '503-always', about: '503 for ever', first: '503-always', two: complete, one: down },
  {
    name: 'reset',
    about: 'the connection is reset before there are headers',
    first: 'reset-before-headers',
    two: complete,
    one: down,
  },
  {
    name: 'silent',
    about: 'no answer for 120 s',
    first: 'silent-120s',
    two: {
      streamed: { ...complete, first: once, seconds: 60 },
      whole: { ...complete, first: once, second: perhaps, seconds: 150 },
    },
    one: { answer: ['complete', 'error'], status: outOfOrder, first: once, seconds: 150 },
  },
  {
    name: 'late',
    about: 'the first token after 20 s',
    first: 'first-token-after-20s',
    two: {
      streamed: { ...complete, first: once, second: perhaps, seconds: 25 },
      whole: { ...complete, first: once, second: perhaps, seconds: 35 },
    },
    one: { ...alone, first: once, seconds: 35 },
  },
  {
    name: 'cut',
    about: 'a cut after 40 of 60 tokens',
    first: 'cut-after-40',
    two: { streamed: afterText, whole: complete },
    onCut: recovered,
    one: { ...down, first: few },
  },
  {
    name: 'stalled',
    about: 'silence after 20 tokens',
    first: 'silent-after-20',
    two: { streamed: { ...afterText, seconds: 80 }, whole: { ...complete, first: once, seconds: 80 } },
    onCut: recovered,
    one: { ...down, first: once, seconds: 80 },
  },
  {
    name: 'damaged',
    about: 'invalid JSON as the tenth event',
    first: 'bad-json-at-10',
    two: { streamed: { ...afterText, answer: ['complete', 'damaged', 'error'] }, whole: complete },
    one: { streamed: { ...down, answer: ['damaged', 'error'], first: few }, whole: { ...down, first: few } },
  },
  {
    name: 'no-done',
    about: 'no terminator',
    first: 'no-done',
    two: { ...alone, first: once },
    one: { ...alone, first: once },
  },
  {
    name: 'context-length',
    about: 'the prompt is too long for the first target',
    first: 'context-length',
    two: { ...complete, first: perhaps },
    one: { answer: ['error'], status: [400, 413], first: once },
  },
  {
    name: 'content-policy',
    about: 'the first target refuses the content',
    first: 'content-policy',
    two: { answer: ['complete', 'error'], status: [400, 403], first: once, second: perhaps },
    one: { answer: ['error'], status: [400, 403], first: once },
  },
  {
    name: 'refused-prefill',
    about: 'a cut after 40 of 60 tokens, and a second target that does not go on from a text',
    first: 'cut-after-40',
    second: 'refuses-prefill',
    two: { streamed: { ...afterText, second: [0, 2] }, whole: complete },
    onCut: { ...recovered, continue: { answer: ['error'], second: [0, 2] } },
    one: { ...down, first: few },
  },
  {
    name: 'outage',
    about: 'the first target is down for 60 s, under a request every 4 s',
    first: 'down-for-60s',
    two: { ...complete, first: [0, 99], second: [0, 99] },
    one: { ...down, first: [0, 99] },
    outage: { every: 4, lasts: 60, backWithin: 30, mostProbes: 12 },
  },
  {
    name: 'accounting',
    about: 'what was counted is passed on exactly',
    first: 'ok',
    two: { answer: ['complete'], first: once },
    one: { answer: ['complete'], first: once },
  },
]

/** What else providers do. */
export const others: readonly Scenario[] = [
  {
    name: 'reset-once',
    about: 'one reset before there are headers',
    first: 'reset-once',
    two: { ...complete, second: perhaps },
    one: { ...alone, first: [2, 2] },
  },
  {
    name: 'idle',
    about: 'kept connections are reset when they are used again',
    first: 'reset-idle-connections',
    two: { ...alone, first: [1, 2] },
    one: { ...alone, first: [1, 2] },
  },
  {
    name: 'opened-then-cut',
    about: 'a stream is opened and breaks before any token',
    first: 'cut-after-0',
    two: complete,
    one: { ...down, first: few },
  },
  {
    name: 'error-event-first',
    about: 'status 200, and an error as the first event',
    first: 'error-first',
    two: complete,
    one: { ...down, first: few },
  },
  {
    name: 'error-event-opened',
    about: 'status 200, and an error after the opening of a stream',
    first: 'error-after-0',
    two: complete,
    one: { ...down, first: few },
  },
  {
    name: 'error-event-late',
    about: 'status 200, and an error after 40 tokens',
    first: 'error-after-40',
    two: { streamed: afterText, whole: complete },
    onCut: recovered,
    one: { ...down, first: few },
  },
  {
    name: 'unfinished',
    about: 'a proper end after 40 tokens, without a finish reason',
    first: 'ends-after-40',
    two: { streamed: afterText, whole: complete },
    onCut: recovered,
    one: { ...down, first: few },
  },
  {
    name: 'pings',
    about: 'nothing but pings for 120 s',
    first: 'pings-for-120s',
    two: {
      streamed: { ...complete, first: once, seconds: 60 },
      whole: { ...complete, first: once, second: perhaps, seconds: 150 },
    },
    one: { answer: ['complete', 'error'], status: outOfOrder, first: once, seconds: 150 },
  },
  {
    name: 'garbage',
    about: 'status 200 with a page of HTML',
    first: 'garbage',
    two: complete,
    one: { ...down, first: few },
  },
  { name: 'empty', about: 'status 200 without a body', first: 'empty', two: complete, one: { ...down, first: few } },
  {
    name: 'finished-and-open',
    about: 'no terminator, and the connection stays open',
    first: 'no-done-and-open',
    two: { ...alone, first: once, seconds: 10 },
    one: { ...alone, first: once, seconds: 10 },
  },
  {
    name: 'finished-and-reset',
    about: 'a cut after the whole answer',
    first: 'reset-after-done',
    two: { ...alone, first: once },
    one: { ...alone, first: once },
  },
  {
    name: 'finished-twice',
    about: 'the finish reason comes twice',
    first: 'double-finish',
    two: { ...alone, first: once },
    one: { ...alone, first: once },
  },
  {
    name: 'json-for-stream',
    about: 'a JSON document in place of a stream',
    first: 'json-for-stream',
    two: { ...alone, second: perhaps },
    one: { ...alone, first: once },
  },
  {
    name: 'events-as-json',
    about: 'events that are labelled as JSON',
    first: 'events-as-json',
    two: { ...alone, second: perhaps },
    one: { ...alone, first: once },
  },
  {
    name: 'events-as-text',
    about: 'events that are labelled as text',
    first: 'events-as-text',
    two: { ...alone, second: perhaps },
    one: { ...alone, first: once },
  },
  ...[401, 402, 403, 404].map((status) => ({
    name: `${status}`,
    about: `the provider refuses the gateway with ${status}`,
    first: `${status}-always`,
    two: { ...complete, first: once },
    one: { answer: ['error'], status: [401, 402, 403, 404, ...outOfOrder], first: once } as const,
  })),
  {
    name: 'redirect',
    about: 'the provider has moved',
    first: '307-always',
    two: { ...complete, first: once },
    one: { ...down, first: once },
  },
  {
    name: 'quota',
    about: 'the credit at the provider is used up',
    first: 'quota',
    two: { ...complete, first: once },
    one: { answer: ['error'], status: [429, 402, ...outOfOrder], first: once },
  },
  {
    name: 'overloaded',
    about: '529 for ever',
    first: '529-always',
    two: complete,
    one: down,
  },
  {
    name: 'refused-behind-503',
    about: '503 for ever, and a second target that refuses with 400',
    first: '503-always',
    second: '400-always',
    two: { ...down, second: once },
    one: down,
  },
  {
    name: 'both-down',
    about: '503 for ever at both targets',
    first: '503-always',
    second: '500-always',
    two: { ...down, second: [1, 6] },
    one: down,
  },
  {
    name: 'uncounted',
    about: 'an answer without usage',
    first: 'usage-missing',
    two: { ...alone, first: once },
    one: { ...alone, first: once },
    estimated: true,
  },
]

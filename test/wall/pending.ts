/** Why a cell is expected to fail; undefined if it must pass. */
export function pendingReason(id: string): string | undefined {
  return pending.find(({ cells }) => cells.test(id))?.reason
}

/** What this router does not do yet: a cell that passes all the same fails its test, so that the list only gets shorter. */
const pending: readonly { cells: RegExp; reason: string }[] = [
  { cells: /^(429|500|reset)-once-one-/, reason: 'the only target is not asked again' },
  { cells: /^late-(two-streamed|one)-/, reason: 'the last open target may not take the time that is left' },
  { cells: /^context-length-two-/, reason: 'a target with a larger window is not asked' },
  { cells: /^outage-/, reason: 'a target that is down is asked by every call' },
  { cells: /^(opened-then-cut|error-event-opened)-two-streamed-/, reason: 'an opening commits a stream' },
  { cells: /^pings-two-streamed-/, reason: 'an opening and pings are signs of life' },
  { cells: /^finished-and-open-.*-streamed-/, reason: 'a finish reason does not end an answer' },
  {
    cells: /^finished-and-reset-.*-streamed-.*(messages|responses)$/,
    reason: 'a finish reason does not end an answer',
  },
  { cells: /^(json-for-stream|events-as-json)-one-streamed-/, reason: 'answers are read by their label' },
  { cells: /^json-for-stream-two-streamed-.*(chat|messages)$/, reason: 'answers are read by their label' },
  { cells: /^402-.*-(chat|responses)$/, reason: 'a quota that is used up is told as the limit of the caller' },
  { cells: /^quota-two-.*-(chat|responses)$/, reason: 'a quota that is used up ends the attempts' },
  { cells: /^404-/, reason: 'a model that is gone is told as a mistake of the caller' },
  { cells: /^refused-behind-503-two-/, reason: 'the last failure stands for all' },
]

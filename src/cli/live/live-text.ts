import { printableInLine } from '../../core/printable.ts'
import { completionTokens, promptTokens } from '../../core/usage.ts'
import type { LiveCall } from './live-call.ts'

/** Lists what is wrong with an answer that came: it would be charged by an estimate, or counts as a failure. */
export function findingsOf({ reply, error }: LiveCall): string[] {
  if (error || !reply) return []
  const { usage, text } = reply
  return [
    ...(promptTokens(usage) === 0
      ? ['no tokens of the prompt are read from it: calls are charged by an estimate']
      : []),
    ...(completionTokens(usage) === 0
      ? ['no tokens of the output are read from it: calls are charged by an estimate']
      : []),
    ...(text === '' ? ['it has no content'] : []),
  ]
}

/** Writes a live call as human-readable lines. */
export function liveText(call: LiveCall): string {
  const { model, streamed, ms, status, error, reply } = call
  const head = `${model}, ${streamed ? 'streamed' : 'whole'}: ${status ?? 'no answer'} in ${(ms / 1_000).toFixed(2)} s`
  if (error || !reply) return `${line(`${head}: ${error?.code}: ${error?.message}`)}`
  const { finish, finish_raw, events, served, usage, usd, usage_fields, unread } = reply
  const counts = Object.entries(usage).flatMap(([name, count]) =>
    typeof count === 'number' ? [`${name} ${count}`] : [],
  )
  const fields = Object.entries(usage_fields).map(([path, count]) => `${path} ${count}`)
  return [
    line(`${head}${events === undefined ? '' : `, ${events} events`}: ${JSON.stringify(reply.text.slice(0, maxText))}`),
    line(`  finish reason: ${finish}${finish_raw === undefined ? '' : ` (the provider's ${finish_raw})`}`),
    line(
      `  usage: ${counts.join(', ') || 'nothing'}${usd === undefined ? '' : `, $${usd.toFixed(9).replace(/\.?0+$/, '')}`}`,
    ),
    line(`  read from: ${fields.join(', ') || 'the answer has no usage'}`),
    ...(served === undefined ? [] : [line(`  served by: ${served}`)]),
    line(`  not read: ${unread.join(', ') || 'nothing'}`),
    ...findingsOf(call).map((finding) => line(`  warning: ${finding}`)),
  ].join('')
}

function line(text: string): string {
  return `${printableInLine(text)}\n`
}

const maxText = 100

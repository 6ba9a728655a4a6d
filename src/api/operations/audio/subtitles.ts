import type { JsonObject } from '../../../core/json.ts'

/** Segments as subtitles: SubRip or WebVTT. */
export function subtitles(segments: readonly JsonObject[], format: 'srt' | 'vtt'): string {
  const mark = format === 'srt' ? ',' : '.'
  const cues = segments.map(({ start, end, text }, index) => {
    const number = format === 'srt' ? `${index + 1}\n` : ''
    return `${number}${timeOf(Number(start), mark)} --> ${timeOf(Number(end), mark)}\n${lineOf(String(text))}\n\n`
  })
  return `${format === 'vtt' ? 'WEBVTT\n\n' : ''}${cues.join('')}`
}

/** `00:01:02.345`. */
function timeOf(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1_000)
  const [h, m, s] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1_000) % 60].map((part) => String(Math.floor(part)))
  return `${h?.padStart(2, '0')}:${m?.padStart(2, '0')}:${s?.padStart(2, '0')}${mark}${String(ms % 1_000).padStart(3, '0')}`
}

/** A text that cannot end its cue, or be taken for its times. */
function lineOf(text: string): string {
  return text
    .trim()
    .replace(/\s*\n\s*/g, '\n')
    .replaceAll('-->', '->')
}

import type { JsonObject } from '../../../core/json.ts'

/** How many characters a text has, each code point being one. */
export function charactersOf(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** About how long it takes to speak a text at its `speed`, in seconds. */
export function estimatedSeconds({ input, speed }: JsonObject): number {
  return sumOf(String(input), { letter: 1 / 15, digit: 0.3, sign: 0.2 }) / (typeof speed === 'number' ? speed : 1)
}

/** The longest that it can take, in seconds: numbers are long words, and instructions may ask for pauses. */
export function mostSeconds({ input, speed, instructions }: JsonObject): number {
  const slowness = typeof speed === 'number' && speed < 1 ? 1 / speed : 1
  const spoken = sumOf(String(input), { letter: 0.2, digit: 1, sign: 0.5 })
  return (leastSeconds + spoken) * slowness * (instructions === undefined ? 1 : 2)
}

/** A word alone may be drawn out. Seconds. */
const leastSeconds = 10

/** Seconds of a letter of an alphabet, of a digit, and of a sign that is a syllable or a word. */
type Pace = { letter: number; digit: number; sign: number }

function sumOf(text: string, { letter, digit, sign }: Pace): number {
  let seconds = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (code >= firstSign) seconds += sign
    else seconds += code >= 48 && code <= 57 ? digit : letter
  }
  return seconds
}

/** From here on Unicode has the scripts of China, Japan and Korea. */
const firstSign = 0x2e80

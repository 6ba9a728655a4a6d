import type { Path } from '../read/position.ts'

/** A path as people write it: `endpoints.chat.unsupported[2]`. */
export function named(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (/^\d+$/.test(String(step))) return `${text}[${step}]`
    return text === '' ? String(step) : `${text}.${step}`
  }, '')
}

import { findAssignedSecrets, findKnownSecrets, isMixed, mergedRanges, type SecretScanner } from '../lib/secrets.ts'
import type { Span } from './spans.ts'

/** Values that follow a name such as "key" without a sign of assignment. */
const introduced =
  /(?<![A-Za-z0-9])(?:api[ _-]?key|secret(?:[ _-]?(?:access[ _-]?)?key)?|access[ _-]?(?:key|token)|auth[ _-]?token|token|bearer|password)["']?\s["']?([A-Za-z0-9_/+=-]{20,250})(?![A-Za-z0-9_/+=-])/gi

/** Minimum length of a value that is assigned to the name of a secret. */
const minLength = 8

/** Maximum length of a password; longer values are keys, which have fewer signs. */
const maxPassword = 64

/** Returns a function that finds keys and tokens of machines, with the rules of a scanner where there is one. */
export function keyFinder(scan?: SecretScanner): (text: string) => Span[] {
  return (text) => {
    const found = findKnownSecrets(text, scan)
    for (const { start, end } of findAssignedSecrets(text)) {
      const value = text.slice(start, end).replace(/[.)}\]]+$/, '')
      if (isKey(value)) found.push({ start, end: start + value.length })
    }
    for (const { index, 0: whole, 1: key = whole } of text.matchAll(introduced)) {
      const end = index + whole.length
      if (isMixed(key)) found.push({ start: end - key.length, end })
    }
    return mergedRanges(found).map(({ start, end }) => ({ kind: 'key', start, end }))
  }
}

/** Finds keys and tokens of machines by patterns alone. */
export const findKeys = keyFinder()

function isKey(value: string): boolean {
  if (value.length < minLength || !isMixed(value) || /\s/.test(value)) return false
  if (value.length > maxPassword && !/^[A-Za-z0-9_/+=.-]+$/.test(value)) return false
  return !/^(?:process|os|env|import|config)\./.test(value) && !isPlace(value)
}

/** Checks whether it is a variable, an address or a path, where a value may be found: a text with a sign or mixed letters is a password. */
function isPlace(text: string): boolean {
  if (/^\$[A-Za-z_]\w*(?:$|[/.:[])|^(?:[.~]{0,2}\/|[A-Za-z]:[\\/])|:\/\//.test(text)) return true
  return text.includes('/') && text.split('/').every((step) => plainStep.test(step))
}

/** A name such as `data`, `db-2`, `My_File.txt` or `v1`. */
const plainStep = /^(?:[A-Z]?[a-z]*|[A-Z]{2,})\d*(?:[-_.](?:[A-Z]?[a-z]*|[A-Z]{2,})\d*)*$/

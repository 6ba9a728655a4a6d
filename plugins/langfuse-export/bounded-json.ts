/** Returns the JSON text of a value, or a note of its length where that is above a bound: such values are never written. */
export function boundedJson(value: unknown, maxCharacters: number): string {
  if (exceeds(value, maxCharacters)) return `[more than ${maxCharacters} characters]`
  const text = JSON.stringify(value)
  return text.length <= maxCharacters ? text : `[${text.length} characters]`
}

/** Checks whether the texts of a value alone are longer than a bound, without looking at the rest of it. */
function exceeds(value: unknown, maxCharacters: number): boolean {
  let left = maxCharacters
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const one = pending.pop()
    left -= typeof one === 'string' ? one.length : 1
    if (left < 0) return true
    if (typeof one === 'object' && one !== null) for (const member of Object.values(one)) pending.push(member)
  }
  return false
}

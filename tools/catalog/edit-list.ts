import { isMap, isScalar, isSeq, type Node, parseDocument } from 'yaml'
import { type Difference, isLeap } from './compare-list.ts'
import { isPrice } from './public-list.ts'

/**
 * The text of a catalog file with other values, and the differences that are to be made by hand: those that no line of the file states, and
 * prices that leap.
 */
export type Edited = { text: string; byHand: Difference[] }

/** Puts the values of a list into the text of a catalog file, number by number: comments and the order of everything stay. */
export function editCatalog(text: string, differences: readonly Difference[]): Edited {
  const document = parseDocument(text)
  const edits: { from: number; to: number; text: string }[] = []
  const byHand: Difference[] = []
  for (const difference of differences) {
    const range = isLeap(difference) ? undefined : rangeOf(document.contents, difference)
    if (range) edits.push({ ...range, text: numberText(difference) })
    else byHand.push(difference)
  }
  // From the end, so that the places of the others stay.
  const ordered = edits.toSorted((one, other) => other.from - one.from)
  return { text: ordered.reduce((all, edit) => all.slice(0, edit.from) + edit.text + all.slice(edit.to), text), byHand }
}

/**
 * Finds the place of a number that a model states itself; undefined for one that it does not state, or that is valid for some time only.
 */
function rangeOf(contents: unknown, { model, field }: Difference): { from: number; to: number } | undefined {
  const entry = entryOf(contents, model)
  if (!isMap(entry) || (isPrice(field) && entry.has('price_changes'))) return undefined
  const value = isPrice(field) ? priceOf(entry.get('pricing', true), field) : entry.get(field, true)
  if (!isScalar(value) || typeof value.value !== 'number' || !value.range) return undefined
  const [from, to] = value.range
  return { from, to }
}

function entryOf(contents: unknown, model: string): unknown {
  if (!isMap(contents)) return undefined
  const others = contents.get('by_api')
  const sections = [contents, ...(isMap(others) ? others.items.map(({ value }) => value) : [])]
  const found = sections
    .map((section) => isMap(section) && section.get('models'))
    .find((models) => isMap(models) && models.has(model))
  return isMap(found) ? found.get(model) : undefined
}

/** Finds a price of the lowest tier. */
function priceOf(pricing: unknown, field: string): Node | undefined {
  const tier = isSeq(pricing) ? pricing.items[0] : pricing
  if (!isMap(tier)) return undefined
  const short = field.replace('_price', '')
  return (tier.get(field, true) ?? tier.get(short, true)) as Node | undefined
}

/** Writes a number as catalogs do: prices in dollars per million tokens, times 1e-6. */
function numberText({ field, theirs }: Difference): string {
  if (!isPrice(field)) return String(theirs)
  return theirs === 0 ? '0' : `${Number((theirs * 1e6).toPrecision(10))}e-6`
}

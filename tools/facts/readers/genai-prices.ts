import { type ListedModel, ratio, scaled, stated } from '../listed.ts'
import { type PythonValue, readPython } from './python.ts'

type Members = { [member: string]: PythonValue | undefined }

/** Reads data.py of the Python package genai-prices, with the prices in force on a day. */
export function readGenaiPrices(text: string, day: string): ListedModel[] {
  const start = text.indexOf('providers: list[Provider] = ')
  if (start < 0) throw new Error('There is no list of providers in it.')
  const providers = listOf(readPython(text, text.indexOf('[', start + 'providers: list[Provider]'.length)))
  return providers.flatMap((provider) => {
    const { id, models } = membersOf(provider)
    if (typeof id !== 'string') return []
    return listOf(models).flatMap((model) => readModel(id, membersOf(model), day))
  })
}

function readModel(provider: string, model: Members, day: string): ListedModel[] {
  if (typeof model.id !== 'string') return []
  const prices = pricesAt(model.prices, day)
  const input = perToken(prices.input_mtok)
  const variants = listOf(model.price_variants).map(membersOf)
  const factor = (name: string, value: string) => {
    const found = variants.find(
      ({ when, constraint }) => membersOf(when)[name] === value && holdsOn(membersOf(constraint), day),
    )
    return ratio(perToken(membersOf(found?.prices).input_mtok), input)
  }
  const facts = stated({
    input_price: input,
    output_price: perToken(prices.output_mtok),
    cached_price: perToken(prices.cache_read_mtok),
    caching_price: perToken(prices.cache_write_mtok),
    caching_1h_price: perToken(prices.cache_write_1h_mtok),
    input_audio_token: perToken(prices.input_audio_mtok),
    output_audio_token: perToken(prices.output_audio_mtok),
    input_image_token: perToken(prices.input_image_mtok),
    per_character: scaled(prices.input_mchars, 1e-6),
    batch: factor('processing', 'batch'),
    flex: factor('service_tier', 'flex'),
    priority: factor('service_tier', 'priority'),
    context_window: model.context_window,
  })
  return [{ provider, ids: [model.id, ...exactIds(model.match)], facts }]
}

/** The last of several prices whose first day has come, without those that depend on the hour. */
function pricesAt(prices: PythonValue | undefined, day: string): Members {
  if (!Array.isArray(prices)) return membersOf(prices)
  const inForce = prices.map(membersOf).filter(({ constraint }) => holdsOn(membersOf(constraint), day))
  return membersOf(inForce.at(-1)?.prices)
}

function holdsOn(constraint: Members, day: string): boolean {
  if (constraint.call === undefined) return true
  if (constraint.call !== 'StartDateConstraint') return false
  const { 0: year, 1: month, 2: date } = membersOf(constraint.start_date)
  const two = (part: PythonValue | undefined) => String(part).padStart(2, '0')
  return `${year}-${two(month)}-${two(date)}` <= day
}

/** The price of the first tier. */
function perToken(price: PythonValue | undefined): number | undefined {
  return scaled(typeof price === 'number' ? price : membersOf(price).base, 1e-6)
}

/** The ids that a clause names as they are; patterns name no model. */
function exactIds(clause: PythonValue | undefined): string[] {
  const { call, equals, or_: either } = membersOf(clause)
  if (call === 'ClauseEquals' && typeof equals === 'string') return [equals]
  return call === 'ClauseOr' ? listOf(either).flatMap(exactIds) : []
}

function membersOf(value: PythonValue | undefined): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

function listOf(value: PythonValue | undefined): PythonValue[] {
  return Array.isArray(value) ? value : []
}

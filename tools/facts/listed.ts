/** Facts about a model that are compared; prices are in USD per unit, multipliers relative to the standard price of input. */
export const factNames = [
  'input_price',
  'output_price',
  'cached_price',
  'caching_price',
  'caching_1h_price',
  'input_audio_token',
  'output_audio_token',
  'input_image_token',
  'per_character',
  'batch',
  'flex',
  'priority',
  'context_window',
  'max_output_tokens',
  'supports_vision',
  'supports_reasoning',
  'supports_tool_calling',
  'shutdown',
] as const
export type FactName = (typeof factNames)[number]
export type FactValue = number | boolean | string

/** Kinds of facts, by which reports count. */
export type FactKind = 'price' | 'limit' | 'ability' | 'retirement'

/** The facts about a model that a list states. */
export type Facts = { [name in FactName]?: FactValue }

/** A model as a list has it. */
export type ListedModel = {
  /** The list's name for the provider. */
  provider: string
  /** Ids of the model: the first one is the list's own. */
  ids: readonly [string, ...string[]]
  /** The API of the model, in the catalog's words; undefined where the list does not state it. */
  api?: string
  facts: Facts
  /** The page of the provider that the list names as its source, and the one for the date of retirement. */
  page?: string
  retirementPage?: string
}

const multipliers: ReadonlySet<string> = new Set(['batch', 'flex', 'priority'])

/** The kind of a fact. */
export function kindOf(name: FactName): FactKind {
  if (name === 'shutdown') return 'retirement'
  if (name === 'context_window' || name === 'max_output_tokens') return 'limit'
  return name.startsWith('supports_') ? 'ability' : 'price'
}

/** Checks whether a fact is a factor on prices. */
export function isMultiplier(name: string): boolean {
  return multipliers.has(name)
}

/** Removes what a list does not state: missing values, prices and limits that cannot be, and dates that are not. */
export function stated(facts: { [name in FactName]?: unknown }): Facts {
  return Object.fromEntries(Object.entries(facts).filter(([name, value]) => isStated(name as FactName, value)))
}

function isStated(name: FactName, value: unknown): boolean {
  if (name === 'shutdown') return typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value)
  if (kindOf(name) === 'ability') return typeof value === 'boolean'
  if (typeof value !== 'number' || !Number.isFinite(value)) return false
  if (kindOf(name) === 'limit') return Number.isInteger(value) && value > 0
  return isMultiplier(name) ? value > 0 && value < 20 : value > 0 && value < maxUnitPrice
}

/** Price that no token or character reaches, in USD: one that is as high is in another unit. */
const maxUnitPrice = 0.01

/** Returns a number that may be written as text, times a factor; undefined for anything else. */
export function scaled(value: unknown, factor: number): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number * factor : undefined
}

/** Returns the quotient of two prices to four digits; undefined unless both are positive. */
export function ratio(price: unknown, standard: unknown): number | undefined {
  if (typeof price !== 'number' || typeof standard !== 'number' || price <= 0 || standard <= 0) return undefined
  return Number((price / standard).toPrecision(4))
}

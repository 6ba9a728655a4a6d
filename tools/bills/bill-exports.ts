/**
 * Reader of the lines of one provider's export: names of columns without punctuation in lower case, the best first. Models are
 * named in texts such as `USE1-Claude4.6Opus-input-tokens` where there is a `service`, which also identifies the lines of other services.
 */
export type BillExport = {
  date: readonly string[]
  /** Columns with the end of a line, if it may cover more than a day. */
  until: readonly string[]
  model: readonly string[]
  cost: readonly string[]
  service?: { columns: readonly string[]; of: RegExp }
  /** Returns the model in the text of its column. */
  modelIn?(text: string): string
}

/** The exports that are known by their columns. */
const exports: readonly (BillExport & { by: readonly string[] })[] = [
  {
    // OpenAI: one line for each model and direction, as `gpt-5-2025-08-07, cached input`.
    by: ['amountvalue', 'lineitem'],
    date: ['starttimeiso', 'starttime'],
    until: ['endtimeiso', 'endtime'],
    model: ['lineitem'],
    cost: ['amountvalue'],
    modelIn: (text) => text.split(',')[0]?.trim() ?? text,
  },
  {
    // OpenRouter: one line for each call.
    by: ['modelpermaslug', 'costtotal'],
    date: ['createdat'],
    until: [],
    model: ['modelpermaslug'],
    cost: ['costtotal'],
  },
  {
    // OpenRouter: sums by day, as its API has them.
    by: ['modelpermaslug', 'usage', 'date'],
    date: ['date'],
    until: [],
    model: ['modelpermaslug'],
    cost: ['usage'],
  },
  {
    // Google Cloud: the table of costs, and the export to BigQuery.
    by: ['servicedescription', 'skudescription'],
    date: ['usagestartdate', 'usagestarttime'],
    until: ['usageenddate', 'usageendtime'],
    model: ['skudescription'],
    cost: ['unroundedcost', 'cost'],
    service: { columns: ['servicedescription'], of: /vertex|gemini|generative language|model garden/i },
  },
  {
    // AWS: the report of cost and usage, in both versions.
    by: ['lineitemusagetype', 'lineitemunblendedcost'],
    date: ['lineitemusagestartdate'],
    until: ['lineitemusageenddate'],
    model: [
      'productmodel',
      'productservicename',
      'productproductname',
      'lineitemusagetype',
      'lineitemlineitemdescription',
    ],
    cost: ['lineitemunblendedcost'],
    service: { columns: ['lineitemproductcode', 'productservicename', 'productproductname'], of: /bedrock/i },
  },
  {
    // AWS: Cost Explorer, by service or by usage type.
    by: ['serviceorusagetype'],
    date: ['date'],
    until: [],
    model: ['serviceorusagetype'],
    cost: ['cost'],
    service: { columns: ['serviceorusagetype'], of: /bedrock|tokens?\b|token-?count/i },
  },
]

/** Returns the export that has such columns; undefined for any other bill. */
export function exportWith(columns: readonly string[]): BillExport | undefined {
  return exports.find(({ by }) => by.every((name) => columns.includes(name)))
}

/** The names of columns for the currency of a line. */
export const currencyColumns: readonly string[] = [
  'currency',
  'currencycode',
  'amountcurrency',
  'costcurrency',
  'billingcurrency',
  'lineitemcurrencycode',
]

/** Checks whether a text names the currency of the ledger. */
export function isUsd(text: string): boolean {
  return /^(?:usd|us\$|\$|us dollars?)$/i.test(text.trim())
}

/** Returns the currency in the title of a column, as in `Cost (€)`, unless it is that of the ledger. */
export function foreignCurrencyIn(title: string): string | undefined {
  const [, unit] = /\(([^()]{1,4})\)\s*$/.exec(title) ?? []
  const found = unit ?? /[€£¥₹₩]/.exec(title)?.[0]
  const isCurrency = found !== undefined && /^(?:[A-Z]{3}|[A-Z]{0,3}\p{Sc})$/u.test(found)
  return isCurrency && !isUsd(found) ? found : undefined
}

import type { Cell } from './cells.ts'

/** The files of a router whose every cell has a provider of its own: what one cell does to it is nobody else's concern. */
export type Setup = { policies: { [id: string]: object }; files: { [path: string]: string } }

/** Which format the provider of a cell speaks, and which the second one. */
export type FormatsOf = (cell: Cell) => readonly [first: Format, second: Format]
type Format = (typeof formats)[number]

const formats = ['openai-chat', 'anthropic-messages', 'openai-responses'] as const
const ofApi = { chat: 0, messages: 1, responses: 2 }

/** Providers speak the client's format where `by` is 0, else the next one, or the one after it. */
export function turned(by: number): FormatsOf {
  const at = (place: number) => formats[place % formats.length] as Format
  return ({ api }) => [at(ofApi[api.name] + by), at(ofApi[api.name] + by + 1)]
}

/** Prices of each token in USD, and what a whole answer to the prompt of a cell costs. */
const prices = { input: 1e-6, output: 2e-6 }

/** `urls` are the addresses of the cells in their order. */
export function setupOf(
  cells: readonly Cell[],
  { urls, time, formatsOf = turned(0) }: { urls: readonly string[]; time: number; formatsOf?: FormatsOf },
): Setup {
  const second = formats.map((format) => [
    `second-${format}`,
    manifest(format, urls[0] ?? '', { time, window: 200_000 }),
  ])
  const own = cells.map((cell, index) => {
    const [format] = formatsOf(cell)
    return [cell.id, manifest(format, urls[index] ?? '', { time, window: 8_192 })]
  })
  const entries = [...second, ...own] as [string, string][]
  const files = entries.map(([slug, text]) => [`providers/${slug}.yaml`, `slug: "${slug}"\n${text}`])
  return {
    files: Object.fromEntries(files),
    policies: Object.fromEntries(cells.map((cell) => [cell.id, policyOf(cell, formatsOf(cell)[1])])),
  }
}

function policyOf({ id, scenario, targets }: Cell, format: Format): object {
  const { first, second = 'ok' } = scenario
  const all = [`${id}/${first}~${id}`, `second-${format}/${second}~${id}`]
  return { targets: targets === 'two' ? all : all.slice(0, 1) }
}

function manifest(dialect: Format, url: string, { time, window }: { time: number; window: number }): string {
  const ms = (seconds: number) => `${Math.ceil(seconds * 1_000 * time)}ms`
  return `name: Simulator
base_url: ${url}${dialect === 'anthropic-messages' ? '' : '/v1'}
auth: { scheme: none }
dialect: ${dialect}
timeouts: { connect: 5s, first_event: ${ms(10)}, between_events: ${ms(10)}, total: ${ms(300)} }
unknown_models: pass
models:
  "*":
    api: chat
    context_window: ${window}
    pricing: [{ prompt_tokens_threshold: 0, input_price: ${prices.input}, output_price: ${prices.output} }]
`
}

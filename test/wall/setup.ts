import { type Cell, type Format, formats } from './cells.ts'

/** The files of a router whose every cell has a provider of its own: what one cell does to it is nobody else's concern. */
export type Setup = { settings: object; files: { [path: string]: string } }

/** Prices of each token in USD, and what a whole answer to the prompt of a cell costs. */
export const prices = { input: 1e-6, output: 2e-6 }

/** `urls` are the addresses of the cells in their order, `url` is that of what they share. */
export function setupOf(
  cells: readonly Cell[],
  { url, urls, time }: { url: string; urls: readonly string[]; time: number },
): Setup {
  const second = formats.map((format) => [`second-${format}`, manifestOf(format, url, { time, window: 200_000 })])
  const own = cells.map((cell, index) => {
    return [cell.id, manifestOf(cell.formats.first, urls[index] ?? '', { time, window: 8_192 })]
  })
  const entries = [...second, ...own] as [string, string][]
  const files = entries.map(([slug, text]) => [`providers/${slug}.yaml`, `slug: "${slug}"\n${text}`])
  return {
    files: Object.fromEntries(files),
    settings: { ...limitsFor(time), policies: Object.fromEntries(cells.map((cell) => [cell.id, policyOf(cell)])) },
  }
}

/** The usual limits, as much shorter as the times of the simulator. */
function limitsFor(time: number): object {
  if (time === 1) return {}
  const scaled = (limits: { [name: string]: number }) =>
    Object.fromEntries(Object.entries(limits).map(([name, seconds]) => [name, duration(seconds * time)]))
  return {
    routing: scaled({ first_event: 10, total: 300, retry_after: 5 }),
    health: scaled({ window: 30, open_for: 5, max_open: 60, ramp_up: 30 }),
  }
}

function duration(seconds: number): string {
  return `${Math.ceil(seconds * 1_000)}ms`
}

function policyOf(cell: Cell): object {
  const { id, scenario, targets, onCut } = cell
  const { first, second = 'ok' } = scenario
  const all = [`${id}/${first}~${id}`, `second-${cell.formats.second}/${second}~${id}`]
  return { targets: targets === 'two' ? all : all.slice(0, 1), ...(onCut && { on_cut: onCut }) }
}

/** A manifest but for its slug; entries of models may follow. */
export function manifestOf(dialect: Format, url: string, { time, window }: { time: number; window: number }): string {
  return `name: Simulator
base_url: ${url}${dialect === 'anthropic-messages' ? '' : '/v1'}
auth: { scheme: none }
dialect: ${dialect}
timeouts: { between_events: ${duration(60 * time)} }
unknown_models: pass
traits: [{ match: '', facts: { prefill: true } }]
models:
  "*":
    api: chat
    context_window: ${window}
    pricing: [{ prompt_tokens_threshold: 0, input_price: ${prices.input}, output_price: ${prices.output} }]
`
}

import { type Fault, faults, type Mode } from './provider.ts'
import { sdks } from './sdk.ts'
import { measure, type Rates, rates } from './table.ts'

/** Heading of the table of success rates. */
export const heading = [
  `| attempts that fail | answers | clients | ${rates.map((rate) => `${rate * 100} % fail`).join(' | ')} |`,
  `|---|---|---|${rates.map(() => '---|').join('')}`,
]

/** Measures the table of success rates, in so many calls of each cell, and prints each line as soon as it is known. */
export async function printTable(calls: number, print: (line: string) => void): Promise<void> {
  print('Of 100 calls succeed: without the router, through it to one target, to two targets.')
  print('')
  for (const line of heading) print(line)
  for (const fault of faults)
    for (const mode of ['streamed', 'whole'] as const)
      for (const clients of [1, 10]) for (const line of await linesOf({ fault, mode, clients }, calls)) print(line)
}

/** Returns one line for both SDKs, or one for each where they differ. */
async function linesOf(some: { fault: Fault; mode: Mode; clients: number }, calls: number): Promise<string[]> {
  const { fault, mode, clients } = some
  const texts = new Map<string, string[]>()
  for (const sdk of sdks) {
    const found: string[] = []
    for (const rate of rates) found.push(shown(await measure({ ...some, rate, sdk }, calls)))
    const text = found.join(' | ')
    texts.set(text, [...(texts.get(text) ?? []), sdk])
  }
  const named = (of: readonly string[]) => (of.length === sdks.length ? `${clients}` : `${clients} (${of.join(', ')})`)
  return [...texts].map(([text, of]) => `| ${fault} | ${mode} | ${named(of)} | ${text} |`)
}

function shown({ direct, one, two }: Rates): string {
  return [direct, one, two].map((share) => (share * 100).toFixed(1)).join(' → ')
}

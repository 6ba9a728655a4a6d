import type { Result } from './run.ts'

/** Collects results, and tells of a scenario as soon as all its cells are over. */
export class Report {
  readonly #print: (line: string) => void
  readonly #left = new Map<string, number>()
  readonly #results: Result[] = []

  /** `scenarios` are those of all cells that will come, one entry each. */
  constructor(scenarios: readonly string[], print: (line: string) => void) {
    this.#print = print
    for (const name of scenarios) this.#left.set(name, (this.#left.get(name) ?? 0) + 1)
  }

  add(result: Result): void {
    const { name } = result.cell.scenario
    this.#results.push(result)
    const left = (this.#left.get(name) ?? 0) - 1
    this.#left.set(name, left)
    if (left === 0) this.#tell(name)
  }

  /** Prints the sums. Whether all passed. */
  end(): boolean {
    const names = [...this.#left.keys()]
    const passed = names.filter((name) => this.#of(name).every(isPassed))
    const cells = this.#results.filter(isPassed)
    this.#print('')
    this.#print(
      `${passed.length} of ${names.length} scenarios, ${cells.length} of ${this.#results.length} cells passed`,
    )
    return passed.length === names.length
  }

  #of(name: string): Result[] {
    return this.#results.filter(({ cell }) => cell.scenario.name === name)
  }

  #tell(name: string): void {
    const results = this.#of(name)
    const failed = results.filter((result) => !isPassed(result))
    const about = results[0]?.cell.scenario.about
    const count = failed.length === 0 ? '' : ` (${failed.length} of ${results.length} cells)`
    this.#print(`${failed.length === 0 ? 'passed' : 'failed'}  ${name}: ${about}${count}`)
    for (const [why, where] of byReason(failed)) this.#print(`          ${where.join(', ')}: ${why}`)
  }
}

function isPassed({ problems }: Result): boolean {
  return problems.length === 0
}

/** The same problems are told once, with all their cells. */
function byReason(failed: readonly Result[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { cell, problems } of failed) {
    const why = problems.join('; ')
    found.set(why, [...(found.get(why) ?? []), `${cell.targets} ${cell.mode} ${cell.api.name}`])
  }
  return found
}

import type { Recording } from '../../helpers/recordings.ts'

/** Counts answers by wire format and feature. */
export class Grid {
  readonly #folders: readonly string[]
  readonly #counts = new Map<string, Map<string, number>>()

  constructor(folders: readonly string[]) {
    this.#folders = folders
  }

  /** One more answer of this recording was as it should be. */
  count({ dialect, feature }: Recording): void {
    const name = feature.replace(/(?<!error-mid)-stream$/, '').replaceAll('_', '-')
    const row = this.#counts.get(name) ?? new Map<string, number>()
    this.#counts.set(name, row.set(dialect, (row.get(dialect) ?? 0) + 1))
  }

  /** The grid as text: a row for each feature, a column for each format. */
  text(title: string): string {
    const names = [...this.#counts.keys()].sort()
    const width = Math.max(...names.map(({ length }) => length), 5)
    const sums = new Map(this.#folders.map((folder) => [folder, this.#sum(folder)]))
    const line = (name: string, cell: (folder: string) => string) =>
      [name.padEnd(width), ...this.#folders.map((folder) => cell(folder).padStart(Math.max(folder.length, 4)))].join(
        '  ',
      )
    return [
      title,
      line('', (folder) => folder),
      ...names.map((name) => line(name, (folder) => String(this.#counts.get(name)?.get(folder) ?? '·'))),
      line('all', (folder) => String(sums.get(folder))),
    ].join('\n')
  }

  #sum(folder: string): number {
    return [...this.#counts.values()].reduce((sum, row) => sum + (row.get(folder) ?? 0), 0)
  }
}

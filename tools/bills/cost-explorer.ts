/** A line of a bill: its cells, and its number in the file. */
export type BillRecord = { cells: string[]; line: number }

/**
 * Returns the lines of AWS Cost Explorer's CSV, which has a column for each service or usage type, as one for each day and column. Any
 * other bill stays as it is.
 */
export function withoutPivot(records: readonly BillRecord[]): readonly BillRecord[] {
  const [head, ...rest] = records
  const [first = '', ...titles] = head?.cells ?? []
  const columns = titles.map((title) => /^(.*?)\s*\(([^()]{1,4})\)$/.exec(title))
  if (!head || !/^(?:service|usage type)$/i.test(first) || columns.length === 0 || columns.includes(null))
    return records
  const unit = columns[0]?.[2]
  const lines = rest
    .filter(({ cells: [date = ''] }) => /^\d{4}-\d\d-\d\d/.test(date))
    .flatMap(({ cells: [date = '', ...costs], line }) =>
      columns.flatMap((column, index) => {
        const [, name = ''] = column ?? []
        const cost = costs[index] ?? ''
        return cost === '' || /^total costs?$/i.test(name) ? [] : [{ cells: [date, name, cost], line }]
      }),
    )
  return [{ cells: ['date', costExplorerGroup, `cost (${unit})`], line: head.line }, ...lines]
}

/** The column of services or usage types in these lines. */
export const costExplorerGroup = 'service or usage type'

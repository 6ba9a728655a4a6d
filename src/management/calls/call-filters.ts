import { oneOf } from '../../api/check.ts'
import type { Outcome } from '../../core/call.ts'
import { catalogue } from '../../core/errors.ts'
import { splitModel } from '../../core/names.ts'
import { operations } from '../../core/operation.ts'
import { type CallFilters, isFilterName } from '../../store/queries/call-filters.ts'
import type { ManageRequest } from '../manage.ts'
import { invalid, parametersOf, rangeTime } from '../read.ts'

/** Query for calls: a range of Unix milliseconds (`to` is exclusive), and filters; and further parameters. */
export type FilteredCalls<More extends string> = { from?: number; to: number; filters: CallFilters } & {
  [name in More]?: string
}

/** Returns the calls that a query asks for, which may have `more` parameters. Throws RouterError 400. */
export function filteredCalls<More extends string>(
  query: ManageRequest['query'],
  more: readonly More[],
): FilteredCalls<More> {
  const isMember = (name: string) => name.startsWith('label.') || name.startsWith('extra.')
  const [members, others] = [true, false].map((wanted) =>
    Object.fromEntries(Object.entries(query).filter(([name]) => isMember(name) === wanted)),
  ) as [typeof query, typeof query]
  const given = parametersOf<string>(others, ['start', 'end', ...equal, ...more])
  const { start, end } = given
  const from = start === undefined ? undefined : rangeTime(start, 'start')
  const to = end === undefined ? latest : rangeTime(end, 'end')
  if (from !== undefined && from >= to) throw invalid("'end' must be later than 'start'.", 'end')
  const named = (names: readonly string[]) =>
    Object.fromEntries(Object.entries(given).filter(([name]) => names.includes(name)))
  return {
    ...(named(more) as { [name in More]?: string }),
    ...(from !== undefined && { from }),
    to,
    filters: { ...equalFilters(named(equal)), ...memberFilters(members) },
  }
}

/** The filters whose value is that of a row. */
const equal = ['key', 'group', 'model', 'provider', 'asked', 'operation', 'outcome', 'code', 'user'] as const
/** Time after all calls that there can be. */
const latest = 253_402_300_800_000
const maxMembers = 8

const outcomes: readonly Outcome[] = ['complete', 'partial', 'failed']
const outcomeOf = oneOf(outcomes)
const operationOf = oneOf(['chat', 'compact', ...Object.keys(operations)])
const codeOf = oneOf(Object.keys(catalogue))

function equalFilters(query: { [name in (typeof equal)[number]]?: string }): CallFilters {
  for (const [name, value] of Object.entries(query)) filled(value, name)
  const { model, provider, asked, operation, outcome, code, ...others } = query
  return {
    ...others,
    ...(provider !== undefined && { provider }),
    ...(model !== undefined && modelFilter(model, provider)),
    ...(asked !== undefined && { requested: asked }),
    ...(operation !== undefined && { operation: operationOf(operation, 'operation') }),
    ...(outcome !== undefined && { outcome: outcomeOf(outcome, 'outcome') }),
    ...(code !== undefined && { code: codeOf(code, 'code') }),
  }
}

function modelFilter(id: string, provider: string | undefined): Pick<CallFilters, 'provider' | 'model'> {
  const found = splitModel(id)
  if (!found) throw invalid(`'model' must be <provider>/<model>, not '${id.slice(0, 60)}'.`, 'model')
  if (provider === undefined || provider === found.provider) return found
  throw invalid(`'model' is one of the provider '${found.provider.slice(0, 60)}', not of 'provider'.`, 'model')
}

function memberFilters(query: ManageRequest['query']): Pick<CallFilters, 'labels' | 'extra'> {
  const members = Object.entries(parametersOf(query, Object.keys(query))).map(([name, value = '']) => {
    const [kind = '', ...rest] = name.split('.')
    if (!isFilterName(rest.join('.')))
      throw invalid(`'${name.slice(0, 60)}' needs a name of at most 128 characters behind '${kind}.'.`, name)
    return { kind, member: [rest.join('.'), value] as const }
  })
  if (members.length > maxMembers) throw invalid(`You can filter by at most ${maxMembers} labels and fields.`)
  const of = (kind: string) => members.flatMap((one) => (one.kind === kind ? [one.member] : []))
  return { labels: of('label'), extra: of('extra') }
}

/** Returns a parameter that is not empty. Throws RouterError 400. */
export function filled(value: string, name: string): string {
  if (value !== '') return value
  throw invalid(`'${name}' is empty; leave it out to get all.`, name)
}

import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { api } from '../api.ts'
import { count, perMillion, usd } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Field, Select } from '../parts/form.ts'
import { Facts, Loading, Page, Section } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Copy, Id, Name } from '../parts/text.ts'
import { changeQuery, type PageProps, to } from '../place.ts'

type Tier = Record<string, number>
export type Model = {
  id: string
  api: string
  owned_by: string
  created?: number
  description?: string
  context_window?: number
  max_output_tokens?: number
  input_price: number
  output_price: number
  cached_price?: number
  pricing: Tier[] | Record<string, number>
  other_prices?: Record<string, number>
  geolocation?: string
  data_retention?: boolean
  data_retention_days?: number
  data_used_for_training?: boolean
  [field: string]: unknown
}

const filters = [
  ['api', 'Kind'],
  ['provider', 'Provider'],
  ['place', 'Region'],
  ['can', 'Supports'],
  ['privacy', 'Privacy'],
] as const

/** Shows all models that can be called, with the facts about them; or one of them. */
export default function Models({ rest, query }: PageProps) {
  const models = useLoad(async (signal) => (await api<{ data: Model[] }>('v1/models/all', { signal })).data)
  if (!models.data)
    return html`<${Page} title=${rest === '' ? 'Models' : html`<${Name} text=${rest} />`}><${Loading} of=${models}>${() => null}<//><//>`
  return html`<${Loading} of=${models}>${(found: Model[]) => (rest === '' ? html`<${ModelTable} models=${found} query=${query} />` : html`<${ModelDetail} id=${rest} model=${found.find(({ id }) => id === rest)} />`)}<//>`
}

function ModelTable({ models, query }: { models: readonly Model[]; query: URLSearchParams }) {
  const shown = useSignal(pageSize)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const options = useMemo(() => optionsOf(models), [models])
  const own = query.toString()
  const found = useMemo(() => {
    shown.value = pageSize
    return search(models, query)
  }, [models, own])
  const later = (changes: Record<string, string>) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => changeQuery(changes), 120)
  }
  return html`
    <${Page} title="Models" actions=${html`<span class="quiet" role="status">${count(found.length)} of ${count(models.length)}</span>`}>
      <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
        <${Field} name="text" label="Search" type="search" value=${query.get('text') ?? ''} onInput=${(text: string) => later({ text })} />
        ${filters.map(([name, label]) => html`<${Select} key=${name} name=${name} label=${label} value=${query.get(name) ?? ''} options=${[['', 'Any'], ...options[name]]} onInput=${(value: string) => changeQuery({ [name]: value })} />`)}
        <${Field} name="input" label="Max input price / 1M" type="number" min=${0} step="any" value=${query.get('input') ?? ''} onInput=${(input: string) => later({ input })} />
        <${Field} name="context" label="Min context" type="number" min=${0} step=${1000} value=${query.get('context') ?? ''} onInput=${(context: string) => later({ context })} />
      </form>
      <${Table} label="Models" rows=${found.slice(0, shown.value)} keyOf=${({ id, api: kind }: Model) => `${kind} ${id}`} empty="No models match." onEnd=${shown.value < found.length ? () => ((shown.value += pageSize)) : undefined} columns=${[
        {
          head: 'Model',
          cell: ({ id }: Model) =>
            html`<a href=${to(`models/${id.split('/').map(encodeURIComponent).join('/')}`)}><${Name} text=${id} /></a>`,
        },
        { head: 'Kind', isMinor: true, cell: ({ api: kind }: Model) => kind },
        { head: 'Input / 1M', isNumber: true, cell: (model: Model) => perMillion(model.input_price) },
        { head: 'Output / 1M', isNumber: true, cell: (model: Model) => perMillion(model.output_price) },
        { head: 'Context', isNumber: true, cell: (model: Model) => count(model.context_window) },
        {
          head: 'Supports',
          isMinor: true,
          cell: (model: Model) => html`<span class="quiet">${abilities(model).map(words).join(', ')}</span>`,
        },
        { head: 'Region', isMinor: true, cell: ({ geolocation }: Model) => geolocation ?? '' },
        { head: '', cell: ({ id }: Model) => html`<${Copy} text=${id} label="Copy ID" />` },
      ]} />
      <p class="hint">Prices are US dollars per million tokens.</p>
    <//>
  `
}

const pageSize = 60

function abilities(model: Model): string[] {
  return Object.keys(model).filter((name) => name.startsWith('supports_') && model[name] === true)
}

function words(flag: string): string {
  return flag.replace('supports_', '').replaceAll('_', ' ').replace('output json', 'JSON')
}

type Option = readonly [string, string]

function optionsOf(models: readonly Model[]): Record<(typeof filters)[number][0], Option[]> {
  const sorted = (values: Iterable<string>, shown = (value: string) => value) =>
    [...new Set(values)].toSorted().map((value): Option => [value, shown(value)])
  return {
    api: sorted(models.map((model) => model.api)),
    provider: sorted(models.map(providerOf)),
    place: sorted(models.flatMap(({ geolocation }) => geolocation ?? [])),
    can: sorted(models.flatMap(abilities), words),
    privacy: [
      ['no-training', 'Does not train on data'],
      ['no-retention', 'Does not retain data'],
    ],
  }
}

function providerOf({ id }: Model): string {
  return id.includes('/') ? (id.split('/')[0] as string) : '(aliases and policies)'
}

function search(models: readonly Model[], query: URLSearchParams): Model[] {
  const of = (name: string) => query.get(name) ?? ''
  const wanted = of('text').toLowerCase().split(/\s+/).filter(Boolean)
  const [kind, provider, place, can, privacy] = filters.map(([name]) => of(name))
  const [most, least] = [Number(of('input') || Infinity) / 1e6, Number(of('context') || 0)]
  return models.filter(
    (model) =>
      (kind === '' || model.api === kind) &&
      (provider === '' || providerOf(model) === provider) &&
      (place === '' || model.geolocation === place) &&
      (can === '' || model[can as string] === true) &&
      (privacy === '' ||
        (privacy === 'no-training' ? model.data_used_for_training === false : model.data_retention === false)) &&
      model.input_price <= most &&
      (model.context_window ?? 0) >= least &&
      wanted.every((word) =>
        `${model.id} ${model.description ?? ''} ${String(model.model_lab ?? '')}`.toLowerCase().includes(word),
      ),
  )
}

/** Members that stand in a place of their own. */
const shownElsewhere = [
  'id',
  'object',
  'pricing',
  'other_prices',
  'description',
  'created',
  'updated',
  'input_price',
  'output_price',
  'cached_price',
  'caching_price',
]

function ModelDetail({ id, model }: { id: string; model: Model | undefined }) {
  if (!model)
    return html`<${Page} title=${html`<${Name} text=${id} />`}><p>There is no such model, or this key cannot call it. <a href=${to('models')}>All models</a></p><//>`
  const tiers = Array.isArray(model.pricing) ? model.pricing : [{ prompt_tokens_threshold: 0, ...model.pricing }]
  const names = [...new Set(tiers.flatMap((tier) => Object.keys(tier)))].filter(
    (name) => name !== 'prompt_tokens_threshold' && typeof tiers[0]?.[name] === 'number',
  )
  const rest = Object.entries(model).filter(
    ([name, value]) => !shownElsewhere.includes(name) && !name.startsWith('supports_') && value !== null,
  )
  return html`
    <${Page} title=${html`<${Name} text=${id} />`} actions=${html`${model.api === 'chat' && html`<a href=${to('playground', { model: id })}>Try it in the playground</a>`} <a href=${to('models')}>All models</a>`}>
      <p><bdi dir="auto">${model.description}</bdi></p>
      <p><${Id} id=${id} /></p>
      <${Section} title="Prices">
        <${Table} label="Prices per million tokens" rows=${tiers} keyOf=${(tier: Tier) => String(tier.prompt_tokens_threshold)} columns=${[
          {
            head: 'Prompt length',
            cell: ({ prompt_tokens_threshold: from = 0 }: Tier) =>
              from === 0 ? 'any length' : `more than ${count(from)} tokens`,
          },
          ...names.map((name) => ({
            head: name.replace('_price', '').replaceAll('_', ' '),
            isNumber: true,
            cell: (tier: Tier) => perMillion(tier[name]),
          })),
        ]} />
        ${model.other_prices && html`<${Facts} facts=${Object.entries(model.other_prices).map(([name, value]) => [name.replaceAll('_', ' '), typeof value === 'number' ? usd(value, true) : JSON.stringify(value)] as const)} />`}
        <p class="hint">US dollars per million tokens, unless noted otherwise.</p>
      <//>
      <${Section} title="Facts"><${Facts} facts=${rest.map(([name, value]) => [name.replaceAll('_', ' '), factText(value)] as const)} /><//>
      <${Section} title="Capabilities"><p>${abilities(model).map(words).join(', ') || 'None known.'}</p><//>
    <//>
  `
}

function factText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return count(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

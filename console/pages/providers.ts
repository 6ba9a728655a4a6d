import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, type Query } from '../api.ts'
import { count, counted } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Circuits } from '../parts/circuits.ts'
import { Field, Form, Select, TextArea, type Values } from '../parts/form.ts'
import { Facts, Loading, Page, Section, Spinner } from '../parts/page.ts'
import { ProviderTiles } from '../parts/provider-tiles.ts'
import { Table } from '../parts/table.ts'
import { Badge, Code, Name, Time } from '../parts/text.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { loadTargets, type Outage } from '../target-health.ts'

type Problem = { place?: string; message: string; effect?: string }
type Provider = {
  slug: string
  name: string
  configured: boolean
  missing: string[]
  models: number
  operations: string[]
  health: Outage[]
  problems: Problem[]
}
type Providers = { providers: Provider[]; problems: Problem[]; generation: number; reloaded_at?: string }
type WholeProvider = Provider & { manifest?: { file: string; text: string } }
type Tried = { method: string; url: string; headers: Record<string, string>; body: unknown; dropped?: string[] }

/** The providers, with those that can be called and the problems of the others; or one of them. */
export default function ProvidersPage({ rest, query }: PageProps) {
  return rest === ''
    ? html`<${ProviderList} query=${query} />`
    : html`<${ProviderDetail} slug=${rest} query=${query} />`
}

function ProviderList({ query }: { query: URLSearchParams }) {
  const providers = useLoad((signal) => api<Providers>('v1/manage/providers', { signal }))
  // What is available immediately does not wait for it.
  const lately = useLoad((signal) => loadTargets(24, signal))
  useEffect(() => {
    // Files may be fixed meanwhile.
    const timer = setInterval(() => document.hidden || providers.reload(), 3_000)
    const slow = setInterval(() => document.hidden || lately.reload(), 15_000)
    return () => {
      clearInterval(timer)
      clearInterval(slow)
    }
  }, [])
  const text = (query.get('text') ?? '').toLowerCase()
  const which = query.get('which') ?? ''
  const isFound = ({ slug, name, configured, health, problems }: Provider) =>
    `${slug} ${name}`.toLowerCase().includes(text) &&
    (which === '' ||
      (which === 'configured' ? configured : which === 'missing' ? !configured : health.length + problems.length > 0))
  return html`
    <${Page} title="Providers">
      <${Loading} of=${providers}>${({ providers: found, problems, generation, reloaded_at: at }: Providers) => html`
        ${allProblems(problems, found).length > 0 && html`<${Section} title="Files with errors"><${Problems} problems=${allProblems(problems, found)} /><//>`}
        <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
          <${Field} name="text" label="Search" type="search" value=${query.get('text') ?? ''} onInput=${(value: string) => changeQuery({ text: value })} />
          <${Select} name="which" label="Filter" value=${which} options=${[['', 'All'], ['configured', 'Configured'], ['missing', 'Not configured'], ['trouble', 'Degraded']]} onInput=${(value: string) => changeQuery({ which: value })} />
        </form>
        ${found.some((one) => one.configured && isFound(one)) && html`<${Section} title="Configured">${lately.data || lately.error ? html`<${ProviderTiles} providers=${found.filter((one) => one.configured && isFound(one))} list=${lately.data} />` : html`<${Spinner} />`}<//>`}
        <${Section} title=${which === '' ? 'All' : 'Found'}><${Table} label="Providers" rows=${found.filter(isFound).toSorted(configuredFirst)} keyOf=${({ slug }: Provider) => slug} columns=${[
          {
            head: 'Provider',
            sortBy: ({ slug }: Provider) => slug,
            cell: ({ slug, name }: Provider) =>
              html`<a href=${to(`providers/${encodeURIComponent(slug)}`)}><${Name} text=${slug} /></a><br /><span class="quiet"><${Name} text=${name} /></span>`,
          },
          { head: 'State', cell: (provider: Provider) => html`<${State} ...${provider} />` },
          {
            head: 'Models',
            isNumber: true,
            sortBy: ({ models }: Provider) => models,
            cell: ({ models, slug }: Provider) =>
              html`<a href=${to('models', { provider: slug })}>${count(models)}</a>`,
          },
          {
            head: 'Operations',
            isMinor: true,
            cell: ({ operations }: Provider) => html`<span class="quiet">${operations.join(', ')}</span>`,
          },
        ]} /><//>
        <p class="hint">Files read ${counted(generation, 'time')}${at ? html`, last <${Time} at=${at} />` : ''}.</p>
      `}<//>
    <//>
  `
}

function configuredFirst(one: Provider, other: Provider): number {
  return Number(other.configured) - Number(one.configured)
}

/** Lists the problems of files that belong to no provider, and those of each provider. */
function allProblems(others: readonly Problem[], providers: readonly Provider[]): Problem[] {
  return [...others, ...providers.flatMap(({ problems }) => problems)]
}

function State({ configured, missing, health, problems }: Provider) {
  return html`<span class="tags">
    ${configured ? html`<${Badge} kind="good">configured<//>` : html`<${Badge}>not configured<//>`}
    ${missing.length > 0 && html`<span>set ${missing.map((name, index) => html`${index > 0 && ', '}<code>${name}</code>`)}</span>`}
    ${health.length > 0 && html`<${Badge} kind="bad">${count(health.length)} degraded<//>`}
    ${problems.length > 0 && html`<${Badge} kind="warn">${counted(problems.length, 'problem')}<//>`}
  </span>`
}

function Problems({ problems }: { problems: readonly Problem[] }) {
  return html`<ul>${problems.map(({ place, message, effect }, index) => html`<li class="failure" key=${index}>${place && html`<code>${place}</code> `}<bdi dir="auto">${message}</bdi>${effect && html` <span class="quiet">${effect}</span>`}</li>`)}</ul>`
}

function ProviderDetail({ slug, query }: { slug: string; query: URLSearchParams }) {
  const path = `v1/manage/providers/${encodeURIComponent(slug)}`
  const provider = useLoad((signal) => api<WholeProvider>(path, { signal }), [slug])
  return html`<${Page} title=${html`<${Name} text=${slug} />`} actions=${html`<a href=${to('models', { provider: slug })}>View models</a> <a href=${to('calls', { provider: slug })}>View calls</a> <a href=${to('providers')}>All providers</a>`}>
    <${Loading} of=${provider}>${(found: WholeProvider) => html`
      <${Facts} facts=${[
        ['Name', html`<${Name} text=${found.name} />`],
        ['State', html`<${State} ...${found} />`],
        ['Models', count(found.models)],
        ['Operations', found.operations.join(', ')],
      ]} />
      ${found.problems.length > 0 && html`<${Section} title="Files with errors"><${Problems} problems=${found.problems} /><//>`}
      ${found.health.length > 0 && html`<${Section} title="Health" actions=${html`<a href=${to('health')}>All targets</a>`}>${found.health.map((outage) => html`<div class="note" key=${`${outage.scope} ${outage.name} ${outage.organization}`}><strong><${Name} text=${outage.name} /></strong><${Circuits} outages=${[outage]} /></div>`)}<//>`}
      <${Try} path=${path} slug=${slug} query=${query} />
      ${found.manifest && html`<${Section} title="Manifest"><${Manifest} ...${found.manifest} problems=${found.problems} /><//>`}
    `}<//>
  <//>`
}

/** A file with its lines; those that have a problem are marked, and the first of them is shown. */
function Manifest({ file, text, problems }: { file: string; text: string; problems: readonly Problem[] }) {
  const marked = new Map(
    problems.flatMap(({ place = '', message }) => {
      const [, name, line] = /^(.*?):(\d+)(?::\d+)?$/.exec(place) ?? []
      return name !== undefined && file.endsWith(name) ? [[Number(line), message] as const] : []
    }),
  )
  const first = useRef<HTMLSpanElement>(null)
  useEffect(() => first.current?.scrollIntoView({ block: 'nearest' }), [text])
  return html`<div class="code"><div class="code-head"><span class="quiet"><${Name} text=${file} mono /></span></div><pre class="lines" tabindex="0" aria-label="Manifest">${text
    .split('\n')
    .map((line, index) => {
      const message = marked.get(index + 1)
      return html`<span key=${index} class=${message ? 'marked' : ''} title=${message} ref=${message ? first : undefined}><span class="line-number" aria-hidden="true">${index + 1}</span>${line}${message && html` <strong>${message}</strong>`}</span>`
    })}</pre></div>`
}

const examples: Record<string, object> = {
  chat: {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ],
    max_tokens: 100,
    temperature: 0.5,
  },
  messages: { system: 'Be brief.', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 },
  responses: { instructions: 'Be brief.', input: 'Hello', max_output_tokens: 100 },
}

/** Shows the request that the provider would be sent. Nothing is sent. */
function Try({ path, slug, query }: { path: string; slug: string; query: Query | URLSearchParams }) {
  const kind = useSignal('chat')
  const tried = useSignal<Tried | undefined>(undefined)
  const models = useLoad(
    async (signal) =>
      (await api<{ data: { id: string; api: string }[] }>('v1/models/all', { signal })).data
        .filter(({ id, api: one }) => one === 'chat' && id.startsWith(`${slug}/`))
        .map(({ id }) => id.slice(slug.length + 1)),
    [slug],
  )
  const run = async (values: Values) => {
    tried.value = undefined
    const body = { model: values.get('model'), api: kind.value, request: JSON.parse(values.get('request')) as object }
    tried.value = await api<Tried>(`${path}/try`, { method: 'POST', body })
  }
  const asked = query instanceof URLSearchParams ? query.get('model') : undefined
  return html`<${Section} title="Try the translation">
    <p class="quiet">See what the provider would receive. Nothing is sent.</p>
    <${Form} submit="Translate" onSubmit=${run}>
      <div class="row">
        <${Select} name="api" label="API of the client" value=${kind.value} options=${[['chat', 'Chat Completions'], ['messages', 'Messages'], ['responses', 'Responses']]} onInput=${(value: string) => (kind.value = value)} />
        <${Field} key=${models.data?.[0]} name="model" label="Model" required value=${asked ?? models.data?.[0] ?? ''} options=${models.data ?? []} />
      </div>
      <${TextArea} key=${kind.value} name="request" label="Request" rows=${8} mono value=${JSON.stringify(examples[kind.value], null, 2)} />
    <//>
    ${
      tried.value &&
      html`<div aria-live="polite">
      ${(tried.value.dropped ?? []).length > 0 && html`<p class="note">Dropped: ${tried.value.dropped?.join(', ')}</p>`}
      <${Code} label="Request to the provider" text=${`${tried.value.method} ${tried.value.url}\n${Object.entries(
        tried.value.headers,
      )
        .map(([name, value]) => `${name}: ${value}`)
        .join(
          '\n',
        )}\n\n${typeof tried.value.body === 'string' ? tried.value.body : JSON.stringify(tried.value.body, null, 2)}`} />
    </div>`
    }
  <//>`
}

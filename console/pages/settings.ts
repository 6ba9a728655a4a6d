import { api } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Field, Select } from '../parts/form.ts'
import { Empty, Facts, Loading, Page, Section } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Badge, Code, Name, Time } from '../parts/text.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { self } from '../session.ts'
import { seesInstance } from '../target-health.ts'

type Setting = {
  name: string
  value: unknown
  from: 'default' | 'config' | 'environment'
  variables: string[]
  needs_restart: boolean
}
type ProviderSettings = {
  slug: string
  enabled: boolean
  settings: string[]
  base_url?: string
  usual_base_url?: string
  overridden_by?: 'config' | 'environment'
  variables?: string[]
}
type Used = {
  file: string
  generation: number
  reloaded_at: string
  settings: Setting[]
  providers: ProviderSettings[]
  plugins: { name: string; options: Record<string, unknown> }[]
}

/** Shows the settings of the server as they are in use, and where each value comes from. No secret is among them. */
export default function Settings({ query }: PageProps) {
  return html`<${Page} title="Settings">${seesInstance() ? html`<${Shown} query=${query} />` : html`<${NotAllowed} />`}<//>`
}

function NotAllowed() {
  return html`<p class="note">The settings belong to the server, not to one organization. This key has instance: ${self.value?.permissions.instance ?? 'none'}; a key with instance: read is needed. The command line grants it on the machine itself: <code>npm run inference-router -- key edit ${self.value?.key_id ?? '<id>'} --instance read</code></p>`
}

function Shown({ query }: { query: URLSearchParams }) {
  const used = useLoad((signal) => api<Used>('v1/manage/instance/settings', { signal }))
  return html`<${Loading} of=${used}>${({
    file,
    generation,
    reloaded_at: at,
    settings,
    providers,
    plugins,
  }: Used) => html`
    <${Facts} facts=${[
      ['File', html`<${Name} text=${file} lines=${3} mono />`],
      ['In use since', html`<${Time} at=${at} />`],
      ['Times read', count(generation)],
    ]} />
    <${Section} title="Providers with settings"><${Providers} providers=${providers} /><//>
    <${Section} title="All settings"><${AllSettings} settings=${settings} query=${query} /><//>
    ${plugins.length > 0 && html`<${Section} title="Options of plugins" actions=${html`<a href=${to('plugins')}>Plugins</a>`}><p class="quiet">Texts are not displayed: they may be secrets.</p><${Code} text=${plugins.map(({ name, options }) => `${name}: ${JSON.stringify(options)}`).join('\n')} /><//>`}
  `}<//>`
}

function Providers({ providers }: { providers: readonly ProviderSettings[] }) {
  return html`<${Table} label="Providers with settings" rows=${providers} keyOf=${({ slug }: ProviderSettings) => slug} empty="Neither config.yaml nor a variable changes anything of a provider." columns=${[
    {
      head: 'Provider',
      cell: ({ slug, enabled }: ProviderSettings) =>
        html`<a href=${to(`providers/${encodeURIComponent(slug)}`)}><${Name} text=${slug} /></a>${!enabled && html` <${Badge}>switched off<//>`}`,
    },
    {
      head: 'Address in use',
      cell: ({ base_url: address, usual_base_url: usual }: ProviderSettings) =>
        html`<span class="address"><${Name} text=${address} mono />${usual !== undefined && html`<span class="quiet">instead of <${Name} text=${usual} mono /></span>`}</span>`,
    },
    { head: 'Overridden by', cell: (provider: ProviderSettings) => overriddenBy(provider) },
    {
      head: 'Settings in config.yaml',
      isMinor: true,
      cell: ({ settings }: ProviderSettings) => settings.join(', ') || html`<span class="quiet">none</span>`,
    },
  ]} />`
}

function overriddenBy({ overridden_by: by, variables = [], settings }: ProviderSettings) {
  if (by === undefined) return html`<span class="quiet">–</span>`
  if (by === 'environment') return html`<${Badge} kind="warn">environment<//> ${variables.join(', ')}`
  return html`<${Badge} kind="warn">config.yaml<//>${!settings.includes('base_url') && ' (the provider whose address it follows)'}`
}

function AllSettings({ settings, query }: { settings: readonly Setting[]; query: URLSearchParams }) {
  const text = (query.get('text') ?? '').toLowerCase()
  const which = query.get('which') ?? ''
  const found = settings.filter(
    ({ name, from }) =>
      name.includes(text) && (which === '' || (which === 'set' ? from !== 'default' : from === 'default')),
  )
  return html`
    <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Field} name="text" label="Search" type="search" value=${query.get('text') ?? ''} onInput=${(value: string) => changeQuery({ text: value })} />
      <${Select} name="which" label="Show" value=${which} options=${[['', 'All'], ['set', 'Set in config.yaml or the environment'], ['default', 'Defaults']]} onInput=${(value: string) => changeQuery({ which: value })} />
    </form>
    ${
      found.length === 0
        ? html`<${Empty}>No setting matches.<//>`
        : html`<${Table} label="Settings" isStacked="as-list" rows=${found} keyOf=${({ name }: Setting) => name} columns=${[
            { head: 'Setting', isMain: true, cell: ({ name }: Setting) => html`<code>${name}</code>` },
            { head: 'Value', cell: ({ value }: Setting) => html`<${Name} text=${valueText(value)} lines=${3} mono />` },
            { head: 'From', cell: fromText },
            {
              head: 'A change applies',
              isMinor: true,
              cell: ({ needs_restart: late }: Setting) =>
                late ? 'after a restart' : html`<span class="quiet">within a second</span>`,
            },
          ]} />`
    }
  `
}

function fromText({ from, variables }: Setting) {
  if (from === 'default') return html`<span class="quiet">default</span>`
  return from === 'config' ? 'config.yaml' : html`environment <span class="quiet">${variables.join(', ')}</span>`
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ')
  return value === null ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

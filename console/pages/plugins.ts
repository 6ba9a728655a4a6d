import { api } from '../api.ts'
import { count, counted, duration } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Button } from '../parts/form.ts'
import { Loading, Page } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Badge, Name } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { to } from '../place.ts'
import { whyNot } from '../session.ts'

type Plugin = {
  name: string
  order: number
  enabled: boolean
  rule: boolean | null
  active: boolean
  sees: boolean
  loaded: boolean
  file?: string
  unavailable?: string
  hooks: string[]
  guards: boolean
  on_error: 'open' | 'closed'
  timeout_ms: number
  problems: { place?: string; message: string; effect?: string }[]
  runs?: { hook: string; calls: number; failed: number }[]
  faults?: { hook: string; fault: string; count: number }[]
}

/** Shows the plugins in the order in which they are called, how often they ran and failed, and switches them for the organization. */
export default function Plugins() {
  const plugins = useLoad((signal) => api<{ plugins: Plugin[]; counted: boolean }>('v1/manage/plugins', { signal }))
  const change = async (name: string, rule: boolean | null) => {
    try {
      await api('v1/manage/org/plugins', { method: 'PUT', body: { plugins: { [name]: rule } } })
      toast(rule === null ? 'As configured.' : rule ? 'Switched on.' : 'Switched off.')
    } catch (thrown) {
      toast((thrown as Error).message, 'bad')
    }
    plugins.reload()
  }
  return html`
    <${Page} title="Plugins" actions=${html`<${Button} onClick=${plugins.reload}>Reload<//>`}>
      <p class="quiet">Plugins see calls in this order and can change, refuse or answer them. A switch applies to the calls of this organization; a <a href=${to('keys')}>key</a> can override it.</p>
      <${Loading} of=${plugins}>${({ plugins: found, counted: isCounted }: NonNullable<typeof plugins.data>) => html`
        <${PluginTable} plugins=${found} isCounted=${isCounted} onChange=${change} />
        ${!isCounted && found.length > 0 && html`<p class="hint">How often plugins ran and failed is counted for all organizations together: a key with instance: read shows it.</p>`}
      `}<//>
    <//>
  `
}

type Changing = (name: string, rule: boolean | null) => Promise<void>

function PluginTable({
  plugins,
  isCounted,
  onChange,
}: {
  plugins: readonly Plugin[]
  isCounted: boolean
  onChange: Changing
}) {
  return html`<${Table} label="Plugins" rows=${plugins} keyOf=${({ name }: Plugin) => name} empty="No plugin is configured. config.yaml lists them, in the order in which they are called." columns=${[
    { head: '#', cell: ({ order }: Plugin) => order },
    { head: 'Plugin', isMain: true, cell: (plugin: Plugin) => html`<${About} plugin=${plugin} />` },
    { head: 'State', cell: (plugin: Plugin) => html`<${State} plugin=${plugin} />` },
    {
      head: 'Hooks',
      isMinor: true,
      cell: ({ hooks }: Plugin) => html`<span class="quiet">${hooks.join(', ') || '–'}</span>`,
    },
    {
      head: 'When it fails',
      isMinor: true,
      cell: ({ on_error: onError, timeout_ms: limit, loaded }: Plugin) =>
        loaded &&
        html`<span title=${`Each hook may take ${duration(limit)}.`}>${onError === 'open' ? 'calls continue without it' : 'the call is refused'}</span>`,
    },
    ...(isCounted
      ? [
          {
            head: 'Calls',
            isNumber: true,
            isMinor: true,
            cell: ({ runs = [] }: Plugin) =>
              html`<span title=${runs.map(({ hook, calls }) => `${hook}: ${calls}`).join(', ')}>${count(Math.max(0, ...runs.map(({ calls }) => calls)))}</span>`,
          },
          { head: 'Faults', cell: ({ faults = [] }: Plugin) => html`<${Faults} faults=${faults} />` },
        ]
      : []),
    { head: '', cell: (plugin: Plugin) => html`<${Switch} plugin=${plugin} onChange=${onChange} />` },
  ]} />`
}

function About({ plugin: { name, file, guards, problems } }: { plugin: Plugin }) {
  return html`<strong><${Name} text=${name} /></strong>${guards && html` <${Badge}>guardrail<//>`}
    ${file !== undefined && html`<br /><span class="quiet"><${Name} text=${file} mono /></span>`}
    ${problems.map(({ place, message, effect }) => html`<p class="failure" key=${`${place} ${message}`}>${place && html`<code>${place}</code> `}<bdi dir="auto">${message}</bdi>${effect && html` <span>(${effect})</span>`}</p>`)}`
}

function State({ plugin: { active, loaded, unavailable, rule, enabled, sees } }: { plugin: Plugin }) {
  if (!loaded)
    return html`<${Badge} kind="bad">not in use<//>${unavailable !== undefined && html`<br /><span class="quiet">calls are refused</span>`}`
  const why = !sees
    ? 'only for other organizations'
    : rule === null
      ? 'as configured'
      : `config.yaml: ${enabled ? 'on' : 'off'}`
  return html`<${Badge} kind=${active ? 'good' : 'neutral'}>${active ? 'on' : 'off'}<//><br /><span class="quiet">${why}</span>`
}

const faultNames: Record<string, string> = {
  threw: 'threw an error',
  took_too_long: 'took too long',
  wrong_result: 'returned something invalid',
  left_out: 'left out: too many calls to record',
}

function Faults({ faults }: { faults: NonNullable<Plugin['faults']> }) {
  if (faults.length === 0) return html`<span class="quiet">none</span>`
  return html`<ul>${faults.map(({ hook, fault, count: times }) => html`<li class="error" key=${`${hook} ${fault}`}><code>${hook}</code> ${faultNames[fault] ?? fault}${times > 1 && `, ${counted(times, 'time')}`}</li>`)}</ul>`
}

function Switch({ plugin: { name, active, rule, enabled, sees }, onChange }: { plugin: Plugin; onChange: Changing }) {
  const why = sees ? whyNot('operate') : 'config.yaml shows this plugin only the calls of other organizations.'
  return html`<span class="actions">
    <${Button} kind="small" whyNot=${why} onClick=${() => void onChange(name, !active)}>${active ? 'Switch off' : 'Switch on'}<span class="sr-only"> ${name}</span><//>
    ${rule !== null && html`<${Button} kind="small" whyNot=${why} onClick=${() => void onChange(name, null)}>${`As configured (${enabled ? 'on' : 'off'})`}<span class="sr-only"> ${name}</span><//>`}
  </span>`
}

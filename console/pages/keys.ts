import { useSignal } from '@preact/signals'
import { all, api } from '../api.ts'
import { paces } from '../budgets.ts'
import { type Group, type KeyEntry, permissionsText } from '../entries.ts'
import { html } from '../html.ts'
import { numberOr, pairsOf } from '../lists.ts'
import { useLoad } from '../load.ts'
import { BudgetBar } from '../parts/budget.ts'
import { Dialog, Secret } from '../parts/dialog.ts'
import { Button, Field, Form, Select, TextArea, type Values } from '../parts/form.ts'
import { ModelsField, modelsIn } from '../parts/model-list.ts'
import { Loading, Page } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Money, Name, Tags } from '../parts/text.ts'
import { type PageProps, to } from '../place.ts'
import { whyNot } from '../session.ts'
import { KeyDetail, LimitFields, limitsIn, pluginsIn } from './key.ts'

/** The keys of the organization; or one of them. */
export default function Keys({ rest }: PageProps) {
  return rest === '' ? html`<${KeyList} />` : html`<${KeyDetail} id=${rest} />`
}

function KeyList() {
  const keys = useLoad((signal) => all<KeyEntry>('v1/manage/apikey', 'keys', signal))
  // Nothing waits for it.
  const pace = useLoad((signal) => paces('key', signal)).data
  const isMaking = useSignal(false)
  const secret = useSignal('')
  const search = useSignal('')
  const made = (key: string) => {
    isMaking.value = false
    secret.value = key
    keys.reload()
  }
  const isFound = ({ id, name, labels }: KeyEntry) =>
    `${name} ${id} ${JSON.stringify(labels)}`.toLowerCase().includes(search.value.toLowerCase())
  return html`
    <${Page} title="Keys" actions=${html`<${Button} kind="primary" whyNot=${whyNot('manage')} onClick=${() => (isMaking.value = true)}>Create key<//>`}>
      <${Loading} of=${keys}>${(found: KeyEntry[]) => html`
        <div class="filters"><${Field} name="search" label="Search" type="search" onInput=${(text: string) => (search.value = text)} /></div>
        <${Table} label="Keys" rows=${found.filter(isFound)} keyOf=${({ id }: KeyEntry) => id} columns=${[
          {
            head: 'Name',
            sortBy: ({ name }: KeyEntry) => name.toLowerCase(),
            cell: ({ id, name }: KeyEntry) => html`<a href=${to(`keys/${id}`)}><${Name} text=${name} /></a>`,
          },
          {
            head: 'This month',
            isNumber: true,
            sortBy: (key: KeyEntry) => key.monthly_spend,
            cell: (key: KeyEntry) =>
              html`<${Money} value=${key.monthly_spend} /><${BudgetBar} spent=${key.monthly_spend} limit=${key.monthly_limit} pace=${pace && (pace.get(key.id) ?? 0)} />`,
          },
          {
            head: 'Limit',
            isNumber: true,
            sortBy: (key: KeyEntry) => key.monthly_limit || Infinity,
            cell: (key: KeyEntry) =>
              key.monthly_limit === 0
                ? html`<span class="quiet">none</span>`
                : html`<${Money} value=${key.monthly_limit} />`,
          },
          { head: 'Permissions', isMinor: true, cell: ({ permissions }: KeyEntry) => permissionsText(permissions) },
          { head: 'Labels', isMinor: true, cell: ({ labels }: KeyEntry) => html`<${Tags} of=${labels} />` },
        ]} />`}<//>
      ${isMaking.value && html`<${NewKey} onClose=${() => (isMaking.value = false)} onMade=${made} />`}
      ${secret.value && html`<${Secret} title="Your new key" secret=${secret.value} onClose=${() => (secret.value = '')} />`}
    <//>
  `
}

const unlimited = { requests_per_minute: null, tokens_per_minute: null, concurrent_calls: null }

const levels = [
  ['', 'Default'],
  ['none', 'None'],
  ['read', 'Read'],
  ['write', 'Write'],
] as const

function NewKey({ onClose, onMade }: { onClose(): void; onMade(key: string): void }) {
  const groups = useLoad((signal) => all<Group>('v1/manage/group', 'groups', signal))
  const create = async (values: Values) => {
    const permissions = Object.fromEntries(
      ['completions', 'manage', 'operate', 'content']
        .filter((area) => values.get(area))
        .map((area) => [area, values.get(area)]),
    )
    const labels = pairsOf(values.get('labels'))
    const plugins = pluginsIn(values.get('plugins'), {})
    const body = {
      name: values.get('name'),
      monthly_limit: numberOr(values.get('monthly_limit'), 'The monthly limit', 0),
      ...(Object.keys(permissions).length > 0 && { permissions }),
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(values.get('group_id') && { group_id: values.get('group_id') }),
      ...(values.get('expires_at') && { expires_at: new Date(values.get('expires_at')).toISOString() }),
      models: modelsIn(values, 'models'),
      limits: limitsIn(values),
      ...(Object.keys(plugins).length > 0 && { plugins }),
    }
    const { api_key: key } = await api<{ api_key: string }>('v1/manage/apikey', { method: 'POST', body })
    onMade(key)
  }
  return html`
    <${Dialog} title="Create a key" onClose=${onClose}>
      <${Form} submit="Create key" onCancel=${onClose} onSubmit=${create}>
        <${Field} name="name" label="Name" required />
        <${Field} name="monthly_limit" label="Monthly limit, USD" type="number" min=${0} step="any" hint="Calls beyond it are refused with 402. Empty: no limit." />
        <div class="row">
          ${(['completions', 'manage', 'operate'] as const).map((area) => html`<${Select} key=${area} name=${area} label=${`Permission to ${area === 'completions' ? 'call models' : area}`} options=${levels} />`)}
          ${whyNot('content', 'read') === undefined && html`<${Select} name="content" label="Permission for content" options=${levels} />`}
        </div>
        <p class="hint">Default: the key can call models, and nothing else.</p>
        <${Select} name="group_id" label="Group" options=${[['', 'None'], ...(groups.data ?? []).map(({ id, name }) => [id, name.slice(0, 80)] as const)]} />
        <${TextArea} name="labels" label="Labels" rows=${2} hint="One name=value per line, for reports." />
        <${Field} name="expires_at" label="Expires" type="datetime-local" hint="Empty: never." />
        <${ModelsField} name="models" models=${null} />
        <${LimitFields} limits=${unlimited} />
        ${
          whyNot('operate') === undefined &&
          html`<${TextArea} name="plugins" label="Plugins" rows=${2} hint="One name=on or name=off per line; other plugins follow the organization." />`
        }
      <//>
    <//>
  `
}

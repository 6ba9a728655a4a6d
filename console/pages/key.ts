import { useSignal } from '@preact/signals'
import { all, api } from '../api.ts'
import { paceOf } from '../budgets.ts'
import { type Group, type KeyEntry, permissionsText } from '../entries.ts'
import { short, usd } from '../format.ts'
import { html } from '../html.ts'
import { numberOr, pairsOf, pairsText } from '../lists.ts'
import { useLoad } from '../load.ts'
import { BudgetBar } from '../parts/budget.ts'
import { Confirm, Dialog, Secret } from '../parts/dialog.ts'
import { Button, Field, Form, Select, TextArea, type Values } from '../parts/form.ts'
import { ModelList, ModelsField, modelsIn } from '../parts/model-list.ts'
import { Facts, Loading, Page } from '../parts/page.ts'
import { Badge, Id, Money, Name, Tags, Time } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { UsageOf } from '../parts/usage-of.ts'
import { to } from '../place.ts'
import { self, whyNot } from '../session.ts'

type Limits = { requests_per_minute: number | null; tokens_per_minute: number | null; concurrent_calls: number | null }
type WholeKey = KeyEntry & {
  expires_at: string | null
  state: 'active' | 'expired' | 'revoked'
  group: string | null
  models: string[] | null
  limits: Limits
  plugins: Record<string, boolean>
  created_at: string
}
/** Parts of a key that can be changed, each in a dialog of its own. */
type Change = 'limit' | 'limits' | 'labels' | 'access' | 'expiry' | 'group' | 'plugins' | 'rotate' | 'delete'

const abouts: { readonly [what in Change]?: string } = {
  ...{
    limit: 'the monthly limit',
    limits: 'the rate limits',
    labels: 'the labels',
    access: 'the models that it can call',
  },
  ...{ expiry: 'when it expires', group: 'the group', plugins: 'the plugins' },
}

/** One key, its permissions and its usage. */
export function KeyDetail({ id }: { id: string }) {
  const path = `v1/manage/apikey/${encodeURIComponent(id)}`
  const key = useLoad((signal) => api<WholeKey>(path, { signal }), [id])
  const groups = useLoad((signal) => all<Group>('v1/manage/group', 'groups', signal))
  const pace = useLoad((signal) => paceOf(`${path}/usage`, signal), [id]).data
  const changing = useSignal<Change | undefined>(undefined)
  const secret = useSignal('')
  const why = whyNot('manage')
  const close = () => (changing.value = undefined)
  const change = async (name: string, body: unknown) => {
    await api(`${path}/${name}`, { method: 'POST', body })
    close()
    toast('Changed.')
    key.reload()
  }
  const button = (what: Change, text: string, reason = why) =>
    html`<${Button} kind="small" whyNot=${reason} onClick=${() => (changing.value = what)}>${text}<span class="sr-only"> ${abouts[what]}</span><//>`
  return html`<${Page} title=${html`<${Name} text=${key.data?.name ?? 'Key'} />`} actions=${html`<a href=${to('calls', { key: id })}>View calls</a> <${Button} whyNot=${why} onClick=${() => (changing.value = 'rotate')}>Rotate<//> <${Button} kind="danger" whyNot=${why} onClick=${() => (changing.value = 'delete')}>Delete<//>`}>
    <${Loading} of=${key}>${(found: WholeKey) => html`
      <${Facts} facts=${[
        ['State', html`<${Badge} kind=${found.state === 'active' ? 'good' : 'bad'}>${found.state}<//>`],
        [
          'Spent this month',
          html`<${Money} value=${found.monthly_spend} isExact /><${BudgetBar} spent=${found.monthly_spend} limit=${found.monthly_limit} pace=${pace} />`,
        ],
        [
          'Monthly limit',
          html`${found.monthly_limit === 0 ? 'none' : html`<${Money} value=${found.monthly_limit} />`} ${button('limit', 'Change')}`,
        ],
        ['Rate limits', html`${limitsText(found.limits)} ${button('limits', 'Change')}`],
        ['Permissions', permissionsText(found.permissions)],
        [
          'Can call',
          html`${found.models === null ? 'everything that the organization can' : html`<${ModelList} ids=${found.models} />`} ${button('access', 'Change')}`,
        ],
        ['Labels', html`<${Tags} of=${found.labels} /> ${button('labels', 'Change')}`],
        [
          'Group',
          html`${found.group === null ? 'none' : html`<a href=${to('groups')}><${Name} text=${groups.data?.find(({ id: one }) => one === found.group)?.name ?? found.group} /></a>`} ${button('group', 'Change')}`,
        ],
        [
          'Expires',
          html`${found.expires_at === null ? 'never' : html`<${Time} at=${found.expires_at} />`} ${button('expiry', 'Change')}`,
        ],
        ['Plugins', html`${html`<${Tags} of=${found.plugins} />`} ${button('plugins', 'Change', whyNot('operate'))}`],
        ['Created', html`<${Time} at=${found.created_at} />`],
        ['ID', html`<${Id} id=${found.id} />`],
      ]} />
      <${UsageOf} path=${`${path}/usage`} />
      <${Changes} what=${changing.value} found=${found} groups=${groups.data ?? []} onClose=${close} change=${change} onSecret=${(
        made: string,
      ) => {
        close()
        secret.value = made
        key.reload()
      }} path=${path} />
    `}<//>
    ${secret.value && html`<${Secret} title="The new secret" secret=${secret.value} onClose=${() => (secret.value = '')} />`}
  <//>`
}

export function limitsText({
  requests_per_minute: requests,
  tokens_per_minute: tokens,
  concurrent_calls: calls,
}: Limits): string {
  const said = [
    requests !== null && `${short(requests)} requests`,
    tokens !== null && `${short(tokens)} tokens`,
    calls !== null && `${calls} concurrent`,
  ].filter(Boolean)
  return said.join(', ') || 'none'
}

type ChangesProps = {
  what: Change | undefined
  found: WholeKey
  groups: readonly Group[]
  path: string
  onClose(): void
  change(name: string, body: unknown): Promise<void>
  onSecret(secret: string): void
}

function Changes({ what, found, groups, path, onClose, change, onSecret }: ChangesProps) {
  const { limits } = found
  if (what === undefined) return null
  if (what === 'rotate') {
    const rotate = async () => onSecret((await api<{ api_key: string }>(`${path}/rotate`, { method: 'POST' })).api_key)
    return html`<${Dialog} title="Rotate the key" onClose=${onClose}><${Form} submit="Rotate" isDangerous onCancel=${onClose} onSubmit=${rotate}><p>The key gets a new secret. The old one stops working immediately.${found.id === self.value?.key_id && ' You are signed in with this key.'}</p><//><//>`
  }
  if (what === 'delete') {
    const remove = async () => {
      await api(path, { method: 'DELETE' })
      toast('Deleted.')
      location.hash = to('keys')
    }
    return html`<${Confirm} title="Delete the key" submit="Delete" onConfirm=${remove} onClose=${onClose}><p>Calls with <strong><${Name} text=${found.name} /></strong> are refused from now on. It has spent ${usd(found.monthly_spend)} this month, which stays in the reports. This cannot be undone.</p><//>`
  }
  const form = formOf(what, found, groups)
  return html`<${Dialog} title=${form.title} onClose=${onClose}><${Form} submit="Save" onCancel=${onClose} onSubmit=${(values: Values) => change(form.path, form.body(values))}>${form.fields}<//><//>`

  function formOf(change: Exclude<Change, 'rotate' | 'delete'>, key: WholeKey, known: readonly Group[]) {
    switch (change) {
      case 'limit':
        return {
          title: 'Monthly limit',
          path: 'limit',
          fields: html`<${Field} name="monthly_limit" label="USD per month" type="number" min=${0} step="any" value=${key.monthly_limit || ''} hint="Calls that could cost more than what remains are refused with 402. Empty: no limit." />`,
          body: (values: Values) => ({ monthly_limit: numberOr(values.get('monthly_limit'), 'The limit', 0) }),
        }
      case 'limits':
        return {
          title: 'Rate limits',
          path: 'limits',
          fields: html`<${LimitFields} limits=${limits} />`,
          body: limitsIn,
        }
      case 'labels':
        return {
          title: 'Labels',
          path: 'label',
          fields: html`<${TextArea} name="labels" label="Labels" value=${pairsText(key.labels)} hint="One name=value per line. They replace all labels." />`,
          body: (values: Values) => ({ labels: pairsOf(values.get('labels')) }),
        }
      case 'access':
        return {
          title: 'What the key can call',
          path: 'access',
          fields: html`<${ModelsField} name="models" models=${key.models} />`,
          body: (values: Values) => ({ models: modelsIn(values, 'models') }),
        }
      case 'expiry':
        return {
          title: 'Expiry',
          path: 'expiry',
          fields: html`<${Field} name="expires_at" label="Expires" type="datetime-local" value=${localTime(key.expires_at)} hint="Empty: never." />`,
          body: (values: Values) => ({
            expires_at: values.get('expires_at') ? new Date(values.get('expires_at')).toISOString() : null,
          }),
        }
      case 'group':
        return {
          title: 'Group',
          path: 'group',
          fields: html`<${Select} name="group_id" label="Group" value=${key.group ?? ''} options=${[['', 'None'], ...known.map(({ id, name }) => [id, name.slice(0, 80)] as const)]} />`,
          body: (values: Values) => ({ group_id: values.get('group_id') || null }),
        }
      case 'plugins':
        return {
          title: 'Plugins',
          path: 'plugins',
          fields: html`<${TextArea} name="plugins" label="Plugins" value=${pairsText(Object.fromEntries(Object.entries(key.plugins).map(([name, on]) => [name, on ? 'on' : 'off'])))} hint="One name=on or name=off per line; other plugins follow the organization." />`,
          body: (values: Values) => ({ plugins: pluginsIn(values.get('plugins'), key.plugins) }),
        }
    }
  }
}

/** Reads the rules about plugins from a text; plugins that are no longer in it follow the default rule again. */
export function pluginsIn(text: string, before: Readonly<Record<string, boolean>>): Record<string, boolean | null> {
  const removed = Object.fromEntries(Object.keys(before).map((name) => [name, null]))
  const said = Object.entries(pairsOf(text)).map(([name, value]) => {
    if (value !== 'on' && value !== 'off') throw new Error(`Write ${name.slice(0, 40)}=on or ${name.slice(0, 40)}=off.`)
    return [name, value === 'on'] as const
  })
  return { ...removed, ...Object.fromEntries(said) }
}

const limitFields = [
  ['requests_per_minute', 'Requests per minute'],
  ['tokens_per_minute', 'Tokens per minute'],
  ['concurrent_calls', 'Concurrent calls'],
] as const

export function LimitFields({ limits }: { limits: Limits }) {
  return html`<div class="row">${limitFields.map(([name, label]) => html`<${Field} key=${name} name=${name} label=${label} type="number" min=${0} step=${1} value=${limits[name] ?? ''} />`)}</div><p class="hint">Calls beyond a limit are refused with 429. Empty: no limit.</p>`
}

export function limitsIn(values: Values): Record<string, number | null> {
  return Object.fromEntries(limitFields.map(([name, label]) => [name, numberOr(values.get(name), label, null)]))
}

/** Formats a time for the browser's field. */
function localTime(at: string | null): string {
  if (at === null) return ''
  const there = new Date(at)
  return new Date(there.getTime() - there.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

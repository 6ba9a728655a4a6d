import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { api } from '../api.ts'
import { paceOf } from '../budgets.ts'
import { html } from '../html.ts'
import { numberOr, pairsText } from '../lists.ts'
import { useLoad } from '../load.ts'
import { BudgetBar } from '../parts/budget.ts'
import { Dialog } from '../parts/dialog.ts'
import { Button, Checkbox, Field, Form, TextArea, type Values } from '../parts/form.ts'
import { ModelList, ModelsField, modelsIn } from '../parts/model-list.ts'
import { Facts, Loading, Page, Section } from '../parts/page.ts'
import { Money, Name, Tags } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { UsageOf } from '../parts/usage-of.ts'
import { whyNot } from '../session.ts'
import { LimitFields, limitsIn, limitsText, pluginsIn } from './key.ts'

type Rules = { geolocation: string[] | null; data_retention: false | null; data_used_for_training: false | null }
type Settings = {
  org: { name: string; balance: number }
  balance: { enforces_balance: boolean }
  models: { approved_models: string[] | null }
  rules: Rules
  limits: { requests_per_minute: number | null; tokens_per_minute: number | null; concurrent_calls: number | null }
  plugins: { plugins: Record<string, boolean> }
}
type Change = 'credit' | 'balance' | 'models' | 'rules' | 'limits' | 'plugins'

const abouts: { readonly [what in Change]?: string } = {
  ...{ balance: 'what happens when the balance is used up', models: 'the approved models', rules: 'the data rules' },
  ...{ limits: 'the limits', plugins: 'the plugins' },
}

/** The organization: its money, and what holds for all its keys. */
export default function Organization() {
  const settings = useLoad(async (signal): Promise<Settings> => {
    const asked = <Answer>(path: string) => api<Answer>(`v1/manage/${path}`, { signal })
    const [org, balance, models, rules, limits, plugins] = await Promise.all([
      asked<Settings['org']>('org'),
      asked<Settings['balance']>('org/balance'),
      asked<Settings['models']>('org/models'),
      asked<Settings['rules']>('org/rules'),
      asked<Settings['limits']>('org/limits'),
      asked<Settings['plugins']>('org/plugins'),
    ])
    return { org, balance, models, rules, limits, plugins }
  })
  const money = useLoad(async (signal) => {
    const path = 'v1/manage/org/usage'
    const [{ usage }, pace] = await Promise.all([
      api<{ usage: Record<string, { spend: number }> }>(path, { query: { resolution: 'month' }, signal }),
      paceOf(path, signal),
    ])
    return { pace, spent: Object.values(usage)[0]?.spend ?? 0 }
  }).data
  const changing = useSignal<Change | undefined>(undefined)
  const close = () => (changing.value = undefined)
  const changed = () => {
    close()
    toast('Changed.')
    settings.reload()
  }
  const button = (what: Change, area: 'manage' | 'operate', text = 'Change') =>
    html`<${Button} kind="small" whyNot=${whyNot(area)} onClick=${() => (changing.value = what)}>${text}<span class="sr-only"> ${abouts[what]}</span><//>`
  return html`
    <${Page} title="Organization">
      <${Loading} of=${settings}>${({ org, balance, models, rules, limits, plugins }: Settings) => html`
        <${Facts} facts=${[
          ['Name', html`<${Name} text=${org.name} />`],
          [
            'Balance',
            html`<${Money} value=${org.balance} isExact /> ${button('credit', 'operate', 'Add credit')}${
              balance.enforces_balance &&
              money &&
              html`<${BudgetBar} spent=${money.spent} limit=${Math.max(money.spent + org.balance, money.spent || 1e-9)} pace=${money.pace} isBalance />`
            }`,
          ],
          [
            'When the balance is used up',
            html`${balance.enforces_balance ? 'calls are refused' : 'calls continue'} ${button('balance', 'operate')}`,
          ],
          ['Limits of all keys combined', html`${limitsText(limits)} ${button('limits', 'operate')}`],
        ]} />
        <${Section} title="Approved models" actions=${button('models', 'manage')}>
          ${models.approved_models === null ? html`<p>All.</p>` : html`<${ModelList} ids=${models.approved_models} />`}
        <//>
        <${Section} title="Data rules" actions=${button('rules', 'manage')}>
          <${Facts} facts=${[
            ['Where data may be processed', rules.geolocation === null ? 'anywhere' : rules.geolocation.join(', ')],
            ['Providers that retain data', rules.data_retention === false ? 'are excluded' : 'are allowed'],
            ['Providers that train on data', rules.data_used_for_training === false ? 'are excluded' : 'are allowed'],
          ]} />
        <//>
        <${Section} title="Plugins" actions=${button('plugins', 'operate')}>${
          Object.keys(plugins.plugins).length === 0
            ? html`<p>All as configured.</p>`
            : html`<${Tags} of=${Object.fromEntries(Object.entries(plugins.plugins).map(([name, on]) => [name, on ? 'on' : 'off']))} />`
        }<//>
        <${UsageOf} path="v1/manage/org/usage" />
        ${changing.value && html`<${Changing} what=${changing.value} settings=${{ org, balance, models, rules, limits, plugins }} onClose=${close} onDone=${changed} />`}
      `}<//>
    <//>
  `
}

type ChangingProps = { what: Change; settings: Settings; onClose(): void; onDone(): void }

function Changing({ what, settings, onClose, onDone }: ChangingProps) {
  const { title, fields, path, body } = formOf(what, settings)
  // Credit that was sent twice, because its answer was lost, is given once.
  const once = useRef(crypto.randomUUID())
  const submit = async (values: Values) => {
    const isCredit = what === 'credit'
    await api(`v1/manage/org/${path}`, {
      method: isCredit ? 'POST' : 'PUT',
      body: body(values),
      ...(isCredit && { headers: { 'idempotency-key': once.current } }),
    })
    onDone()
  }
  const changeId = () => {
    once.current = crypto.randomUUID()
  }
  return html`<${Dialog} title=${title} onClose=${onClose}><${Form} submit="Save" onCancel=${onClose} onSubmit=${submit}><div class="form" onInput=${changeId}>${fields}</div><//><//>`
}

function formOf(
  what: Change,
  { balance, models, rules, limits, plugins }: Settings,
): { title: string; path: string; fields: unknown; body(values: Values): unknown } {
  switch (what) {
    case 'credit':
      return {
        title: 'Add credit',
        path: 'credit',
        fields: html`<${Field} name="amount" label="USD" type="number" step="any" required hint="A negative amount takes credit back." /><${Field} name="note" label="Note" hint="For the audit log." />`,
        body: (values) => ({
          amount: numberOr(values.get('amount'), 'The amount', 0),
          ...(values.get('note') && { note: values.get('note') }),
        }),
      }
    case 'balance':
      return {
        title: 'When the balance is used up',
        path: 'balance',
        fields: html`<${Checkbox} name="enforces_balance" label="Refuse calls" checked=${balance.enforces_balance} hint="Calls that could cost more than the balance are refused with 402." />`,
        body: (values) => ({ enforces_balance: values.has('enforces_balance') }),
      }
    case 'models':
      return {
        title: 'Approved models',
        path: 'models',
        fields: html`<${ModelsField} name="approved_models" models=${models.approved_models} />`,
        body: (values) => ({ approved_models: modelsIn(values, 'approved_models') }),
      }
    case 'rules':
      return {
        title: 'Data rules',
        path: 'rules',
        fields: html`
          <${Field} name="geolocation" label="Only processed in" value=${(rules.geolocation ?? []).join(', ')} hint="Regions, separated by commas, such as eu. Empty: anywhere." />
          <${Checkbox} name="data_retention" label="Exclude providers that retain data" checked=${rules.data_retention === false} />
          <${Checkbox} name="data_used_for_training" label="Exclude providers that train on data" checked=${rules.data_used_for_training === false} />`,
        body: (values) => {
          const places = values
            .get('geolocation')
            .split(',')
            .map((place) => place.trim())
            .filter(Boolean)
          return {
            geolocation: places.length > 0 ? places : null,
            data_retention: values.has('data_retention') ? false : null,
            data_used_for_training: values.has('data_used_for_training') ? false : null,
          }
        },
      }
    case 'limits':
      return {
        title: 'Limits of all keys combined',
        path: 'limits',
        fields: html`<${LimitFields} limits=${limits} />`,
        body: limitsIn,
      }
    case 'plugins':
      return {
        title: 'Plugins',
        path: 'plugins',
        fields: html`<${TextArea} name="plugins" label="Plugins" value=${pairsText(Object.fromEntries(Object.entries(plugins.plugins).map(([name, on]) => [name, on ? 'on' : 'off'])))} hint="One name=on or name=off per line; other plugins follow the configuration." />`,
        body: (values) => ({ plugins: pluginsIn(values.get('plugins'), plugins.plugins) }),
      }
  }
}

import { useEffect } from 'preact/hooks'
import { api } from '../api.ts'
import { counted } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { to } from '../place.ts'
import { Section } from './page.ts'

/** A file that is not in use in its newest version, or a hook of a plugin that fails on every call. */
type Problem = {
  kind: string
  place?: string
  message: string
  effect?: string
  plugin?: string
  unavailable: string[]
}

const reloadMs = 10_000

/** Lists the files with errors, with the place of each and what is unavailable because of it. They may be fixed meanwhile. */
export function FileProblems() {
  const found = useLoad((signal) => api<{ problems: Problem[] }>('v1/manage/problems', { signal }))
  useEffect(() => {
    const timer = setInterval(() => document.hidden || found.reload(), reloadMs)
    return () => clearInterval(timer)
  }, [])
  const problems = found.data?.problems ?? []
  if (problems.length === 0) return null
  const isOfFiles = problems.some(({ kind }) => kind !== 'hook')
  return html`<${Section} title=${isOfFiles ? 'Files with errors' : 'Plugins that fail'} actions=${html`<a href=${to(isOfFiles ? 'providers' : 'plugins')}>${isOfFiles ? 'Providers' : 'Plugins'}</a>`}>
    <ul class="file-problems">${problems.map((problem) => html`<${ProblemItem} key=${`${problem.place} ${problem.message}`} problem=${problem} />`)}</ul>
  <//>`
}

function ProblemItem({ problem: { kind, place, message, effect, unavailable } }: { problem: Problem }) {
  const [, file = place, line, column] = /^(.*):(\d+):(\d+)$/.exec(place ?? '') ?? []
  const page = kind === 'plugin' ? 'plugins' : 'providers'
  return html`<li class="failure">
    ${file !== undefined && html`<p><code>${file}</code>${line !== undefined && `, line ${line}, column ${column}`}</p>`}
    <p><bdi dir="auto">${message}</bdi></p>
    ${effect && unavailable.length === 0 && html`<p class="effect">${effect.slice(0, 1).toUpperCase()}${effect.slice(1)}.</p>`}
    ${unavailable.length > 0 && html`<p><strong>${counted(unavailable.length, kind === 'plugin' ? 'plugin' : 'provider')} unavailable:</strong> ${unavailable.map((name, index) => html`${index > 0 && ', '}<a href=${to(kind === 'plugin' ? page : `${page}/${encodeURIComponent(name)}`)}>${name}</a>`)}</p>`}
  </li>`
}

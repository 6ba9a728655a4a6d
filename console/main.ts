import { signal, useSignal } from '@preact/signals'
import { type FunctionComponent, render } from 'preact'
import { useEffect } from 'preact/hooks'
import { UnreachableError } from './api.ts'
import { html } from './html.ts'
import { SignIn } from './pages/sign-in.ts'
import { Failure, Spinner } from './parts/page.ts'
import { Time } from './parts/text.ts'
import { Toasts } from './parts/toast.ts'
import { type PageProps, type Place, place, placeIn } from './place.ts'
import { isReachable, lastAnswer, noteAnswer, returns, untilReachable, watchRouter } from './reachable.ts'
import { type Route, routes } from './routes.ts'
import { isSignedIn, key, keyInAddress, organization, self, signOut } from './session.ts'
import { signIn } from './sign-in.ts'

/** True while the key of this tab, or of the link, is still being checked. */
const isChecking = signal(true)

function App() {
  if (isChecking.value) return html`<${Unreachable} /><${Spinner} />`
  if (!isSignedIn.value) return html`<${SignIn} />`
  const route = routeOf(place.value)
  return html`
    <a class="skip" href="#content" onClick=${toContent}>Skip to the content</a>
    <${Sidebar} current=${route?.path} />
    <main id="content" tabindex="-1" class=${isReachable.value ? '' : 'out-of-date'}>
      <${Unreachable} />
      ${route ? html`<${Shown} key=${route.path} route=${route} />` : html`<${Failure} error=${new Error('There is no such page.')} />`}
    </main>
    <${Toasts} />
  `
}

/** Shown as long as the router does not answer: all that is on the page is from before. It stays in sight when the page is scrolled. */
function Unreachable() {
  return html`<div role="status" class="unreachable">${!isReachable.value && html`<p class="failure">The router has not answered since <${Time} at=${new Date(lastAnswer.value).toISOString()} />. What you see is from before then; the page continues as soon as the router is back.</p>`}</div>`
}

function routeOf({ path: asked }: Place): Route | undefined {
  return routes.find(({ path }) => path === asked)
}

function toContent(event: Event) {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

function Sidebar({ current }: { current: string | undefined }) {
  const isOpen = useSignal(false)
  const may = self.value?.permissions
  return html`
    <header class="sidebar">
      <div class="brand">
        <a href="#/"><img src="icon.svg" alt="" width="24" height="24" /> inference-router</a>
        <button type="button" class="menu-button" aria-expanded=${isOpen.value} aria-controls="nav" onClick=${() => (isOpen.value = !isOpen.value)}>Menu</button>
      </div>
      <nav id="nav" aria-label="Pages" class=${isOpen.value ? 'open' : ''} onClick=${() => (isOpen.value = false)}>
        <ul>
          ${routes.map(
            ({ path, title }) =>
              html`<li><a href=${`#/${path}`} aria-current=${path === current ? 'page' : undefined}>${title}</a></li>`,
          )}
        </ul>
        <div class="account">
          <bdi class="clip" dir="auto" title=${organization.value}>${organization.value}</bdi>
          <span class="quiet">${may?.manage === 'write' ? 'can read and write' : 'can only read'}</span>
          <button type="button" class="link" onClick=${() => signOut()}>Sign out</button>
        </div>
      </nav>
    </header>
  `
}

/** True until a page has been shown: the browser itself announces the first one. */
let isFirst = true

/** A page, loaded when it is first shown. */
function Shown({ route }: { route: Route }) {
  const page = useSignal<FunctionComponent<PageProps> | undefined>(undefined)
  const hasFailed = useSignal(false)
  useEffect(() => {
    document.title = `${route.title} · inference-router`
    route.load().then(
      ({ default: found }) => {
        page.value = found
      },
      () => {
        hasFailed.value = true
        noteAnswer(false)
      },
    )
  }, [route])
  useEffect(() => {
    // A browser does not ask again for a file that did not arrive.
    if (hasFailed.value && !page.value) location.reload()
  }, [returns.value])
  useEffect(() => {
    // Screen readers announce the new page and continue in it.
    if (!isFirst) document.getElementById('content')?.focus()
    isFirst = false
  }, [route])
  const { rest, query } = place.value
  if (hasFailed.value && !page.value) return html`<${NotLoaded} />`
  return page.value ? html`<${page.value} rest=${rest} query=${query} />` : html`<${Spinner} />`
}

/** A page whose files did not arrive. Browsers remember that of a file until the whole console is loaded anew. */
function NotLoaded() {
  return html`
    <p class="failure" role="alert">This page could not be loaded.</p>
    <p><button type="button" onClick=${() => location.reload()}>Load the console again</button></p>
  `
}

/** Signs in; while the router does not answer, the key is kept and tried again. Throws ApiError and the errors of `signIn`. */
async function signInWhenReachable(secret: string): Promise<void> {
  for (;;) {
    try {
      await signIn(secret)
      return
    } catch (thrown) {
      if (!(thrown instanceof UnreachableError)) throw thrown
      await untilReachable()
    }
  }
}

async function start() {
  const linked = keyInAddress()
  place.value = placeIn(location.hash)
  try {
    if (linked ?? key.value) {
      // The page is loaded meanwhile; a failure is shown with the page.
      routeOf(place.value)
        ?.load()
        .catch(() => {})
      await signInWhenReachable(linked ?? key.value)
    }
  } catch (thrown) {
    signOut((thrown as Error).message)
  }
  isChecking.value = false
}

// A link with a key may be opened in a tab that shows the console already.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#key=')) void start()
})
watchRouter()
render(html`<${App} />`, document.getElementById('app') as HTMLElement)
void start()

import { useSignal } from '@preact/signals'
import { html } from '../html.ts'
import { signedOutBecause } from '../session.ts'
import { signIn } from '../sign-in.ts'

/** Asks for a key. */
export function SignIn() {
  const error = useSignal(signedOutBecause.value)
  const isBusy = useSignal(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const secret = String(new FormData(event.currentTarget as HTMLFormElement).get('key')).trim()
    isBusy.value = true
    try {
      await signIn(secret)
    } catch (thrown) {
      error.value = (thrown as Error).message
    }
    isBusy.value = false
  }
  return html`
    <main class="sign-in">
      <form onSubmit=${submit}>
        <h1><img src="icon.svg" alt="" width="32" height="32" /> inference-router</h1>
        <label for="key">API key</label>
        <input id="key" name="key" type="password" required autocomplete="off" spellcheck="false" aria-describedby="key-hint key-error" autofocus />
        <p id="key-hint" class="quiet">A key with <code>manage: read</code> or <code>manage: write</code>. It is stored until you close this tab, and sent only to this router.</p>
        <p id="key-error" class="error" role="alert">${error.value}</p>
        <button type="submit" class="primary" disabled=${isBusy.value}>Sign in</button>
      </form>
    </main>
  `
}

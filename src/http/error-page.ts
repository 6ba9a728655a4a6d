import { catalogue, type ErrorCode, errorsPath } from '../core/errors.ts'
import { tagged } from './respond.ts'
import type { JsonAnswer, JsonRoute } from './types.ts'

/** Serves `GET /docs/errors.html`, to which the `doc_url` of errors leads, without authentication. Written on the first request. */
export function errorPageRoutes(): JsonRoute[] {
  let answer: Promise<JsonAnswer> | undefined
  return [
    {
      path: errorsPath,
      answer: () => {
        answer ??= errorPage().then((text) => ({ ...tagged(text), mediaType: 'text/html; charset=utf-8' }))
        return answer
      },
    },
  ]
}

/** Returns the page in HTML, which loads nothing else. */
async function errorPage(): Promise<string> {
  const { errorHelp, exampleBody } = await import('./error-help.ts')
  const sections = Object.entries(catalogue).map(([code, { status }]) => {
    const { meaning, remedy, message } = errorHelp[code as ErrorCode]
    const example = JSON.stringify(exampleBody(code as ErrorCode, message), null, 2)
    return `<section id="${code}"><h2><code>${code}</code> <small>${status}</small></h2>
<p>${marked(meaning)}</p>
<p>${marked(remedy)}</p>
<pre tabindex="0">${escaped(example)}</pre></section>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Errors of the router</title>
<style>
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5 }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
pre { overflow: auto; padding: .75rem; border: 1px solid }
section:target { outline: 2px solid; outline-offset: .5rem }
</style>
<main>
<h1>Errors</h1>
<p>Every error has a <code>doc_url</code> that leads to its section here. The number is its HTTP status.</p>
${sections.join('\n')}
</main>
</html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

/** Writes code between backquotes as such. */
function marked(text: string): string {
  return escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

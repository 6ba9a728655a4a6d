import { transformSync } from 'amaro'

/** Returns the JavaScript of a file: without its types, and with imports of JavaScript. Lines and columns stay where they are. */
export function javascriptOf(text: string): string {
  return importingJavaScript(transformSync(text, { mode: 'strip-only' }).code)
}

/** Returns a text in which relative imports, written out in quotes, name JavaScript files. */
export function importingJavaScript(text: string): string {
  return text.replace(/(['"])(\.{1,2}\/[^'"`$\s]*)\.ts\1/g, '$1$2.js$1')
}

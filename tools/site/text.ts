import { relative } from './links.ts'
import type { Page, sectionsOf } from './pages.ts'

type Sections = ReturnType<typeof sectionsOf>

/** Returns `llms.txt`: the table of contents for language models (https://llmstxt.org). */
export function llmsText(description: string, sections: Sections): string {
  const parts = sections.map(({ title, pages }) => {
    const entries = pages.map((page) => `- [${page.title}](${relative('llms.txt', page.path)}): ${summaryOf(page)}`)
    return `## ${title}\n\n${entries.join('\n')}\n`
  })
  return `# inference-router\n\n> ${description}\n\nEvery page is also there as Markdown, and all of them as [llms-full.txt](llms-full.txt).\n\n${parts.join('\n')}`
}

/** Returns `llms-full.txt`: all pages in the order of the table of contents. */
export function llmsFullText(home: Page | undefined, sections: Sections): string {
  const pages = [...(home ? [home] : []), ...sections.flatMap(({ pages }) => pages)]
  return pages.map(({ path, text }) => `<!-- ${path} -->\n\n${text.trim()}\n`).join('\n')
}

/** Returns the first sentence of a page below its heading. */
export function summaryOf({ text, title }: Page): string {
  const paragraphs = text.replace(/^(`{3,})[\s\S]*?^\1$/gm, '').split(/\n{2,}/)
  const first = paragraphs.find((paragraph) => /^[\p{L}`*[]/u.test(paragraph.trim())) ?? title
  const plain = first
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim()
  return /^.*?[.:](?= |$)/.exec(plain)?.[0]?.replace(/:$/, '.') ?? plain
}

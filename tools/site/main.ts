/**
 * Builds the documentation site into dist/docs: `npm run docs:build`. The pages are copied to dist/docs-build with the links of the site,
 * where the generator is installed too. `--preview` serves what was built.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { apiPages, readOpenapi } from './api-page.ts'
import { checkSite } from './check.ts'
import { copyOf, type Linked, linked, type Repository, relative } from './links.ts'
import { type Page, readPages, sectionsOf, sidebarOf } from './pages.ts'
import { llmsFullText, llmsText } from './text.ts'

const root = join(import.meta.dirname, '../..')
const site = join(root, 'dist/docs')
const work = join(root, 'dist/docs-build')
const base = process.env.DOCS_BASE ?? '/'
const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { description: string }

const repository: Repository = (path) => {
  const found = statSync(join(root, path), { throwIfNoEntry: false })
  return found?.isFile() ? 'file' : found?.isDirectory() ? 'folder' : undefined
}

/** Writes a file and the folders that it needs. */
function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** Writes the pages for the generator. Returns them as Markdown with links between the `.md` files of the site. */
function stage(pages: readonly Page[]): Page[] {
  for (const name of ['pages', '.vitepress']) rmSync(join(work, name), { recursive: true, force: true })
  cpSync(join(root, 'docs/.vitepress'), join(work, '.vitepress'), { recursive: true })
  // Without it the build tool would read the one of the project.
  write(join(work, 'tsconfig.json'), '{}')
  const sections = sectionsOf(pages)
  const sidebar = sidebarOf(sections)
  const nav = sidebar
    .filter(({ text }) => !['Project', 'Concepts'].includes(text))
    .map(({ text, items }) => ({ text, link: items[0]?.link }))
  write(join(work, '.vitepress/site.json'), JSON.stringify({ description, nav, sidebar }, null, 2))
  const inSite = pages.map((page) => linked(page, pages, repository, (file) => `/${copyOf(file)}`))
  const dead = inSite.flatMap((page) => page.dead)
  if (dead.length > 0) throw new Error(`Dead links:\n${dead.join('\n')}`)
  inSite.forEach(({ text }, index) => {
    write(join(work, 'pages', pages[index]?.path ?? ''), text)
  })
  copyFiles(inSite)
  return pages.map((page) => ({
    ...page,
    text: linked(page, pages, repository, (file) => relative(page.path, copyOf(file))).text,
  }))
}

/** Copies the files that pages link to. */
function copyFiles(pages: readonly Linked[]): void {
  for (const file of new Set(pages.flatMap(({ files }) => files))) {
    const to = join(work, 'pages/public', copyOf(file))
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(root, file), to)
  }
}

/** Installs the generator where it is missing or older than its lock file. */
function install(): void {
  const locked = readFileSync(join(root, 'docs/.vitepress/package-lock.json'), 'utf8')
  const installed = join(work, 'node_modules/.installed')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === locked) return
  for (const name of ['package.json', 'package-lock.json'])
    cpSync(join(root, 'docs/.vitepress', name), join(work, name))
  run(npm, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
  writeFileSync(installed, locked)
}

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** Runs a program in the working folder. Throws when it fails. */
function run(command: string, args: readonly string[]): void {
  const shell = process.platform === 'win32' && command === npm
  const { status, error } = spawnSync(command, args, { cwd: work, stdio: 'inherit', shell })
  if (status !== 0) throw new Error(`${command} ${args[0]} failed`, { cause: error })
}

const vitepress = (name: string, ...args: string[]) =>
  run(process.execPath, [join(work, 'node_modules/vitepress/bin/vitepress.js'), name, '.', ...args])

function build(): void {
  const pages = readPages(root, apiPages(readOpenapi(root)))
  mkdirSync(work, { recursive: true })
  const texts = stage(pages)
  install()
  rmSync(site, { recursive: true, force: true })
  vitepress('build')
  for (const { path, text } of texts) write(join(site, path), text)
  const sections = sectionsOf(texts)
  write(join(site, 'llms.txt'), llmsText(description, sections))
  write(
    join(site, 'llms-full.txt'),
    llmsFullText(
      texts.find(({ path }) => path === 'index.md'),
      sections,
    ),
  )
  const problems = checkSite(site, base)
  if (problems.length > 0) throw new Error(`The site has problems:\n${problems.join('\n')}`)
  console.log(`dist/docs: ${pages.length} pages, no dead links`)
}

try {
  if (process.argv.includes('--preview')) vitepress('preview')
  else build()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

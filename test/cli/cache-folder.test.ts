import { chmodSync, lstatSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { cacheFolder } from '../../src/runtime/cache-folder.js'

let home: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cache-folder-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
})

test('the folder is chosen by variables, and made for its owner alone', () => {
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: 'off', XDG_CACHE_HOME: home })).toBeUndefined()
  const chosen = cacheFolder({ INFERENCE_ROUTER_CACHE: join(home, 'a/b'), XDG_CACHE_HOME: home })
  expect(chosen).toBe(join(home, 'a/b'))
  const ofUser = cacheFolder({ XDG_CACHE_HOME: home })
  expect(ofUser).toBe(join(home, 'inference-router'))
  expect(lstatSync(ofUser ?? '').mode & 0o777).toBe(0o700)
})

test('a folder that others may write to, a link and a file are not used', () => {
  const open = join(home, 'open')
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: open })).toBe(open)
  chmodSync(open, 0o770)
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: open })).toBeUndefined()
  const link = join(home, 'link')
  symlinkSync(homedir(), link)
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: link })).toBeUndefined()
  const file = join(home, 'file')
  writeFileSync(file, '')
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: file })).toBeUndefined()
  expect(cacheFolder({ INFERENCE_ROUTER_CACHE: join(file, 'below') })).toBeUndefined()
})

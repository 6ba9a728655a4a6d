import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import type { Express } from 'express'

const require = createRequire(import.meta.url)

/** As `express()`, from the parts that it is made of: the whole of Express has readers of bodies and of files, 40 modules. */
export function expressApp(): Express {
  const app = ((request, response, next) => app.handle(request, response, next)) as Express & {
    handle: (...given: unknown[]) => void
  }
  for (const source of [EventEmitter.prototype, require('express/lib/application.js')]) {
    for (const name of Object.getOwnPropertyNames(source)) {
      const member = Object.getOwnPropertyDescriptor(source, name)
      if (member && !Object.hasOwn(app, name)) Object.defineProperty(app, name, member)
    }
  }
  const own = { app: { value: app, configurable: true, enumerable: true, writable: true } }
  app.request = Object.create(require('express/lib/request.js'), own)
  app.response = Object.create(require('express/lib/response.js'), own)
  app.init()
  return app
}

/** All of Express, for what few requests need. */
export function wholeExpress(): typeof import('express') {
  return require('express')
}

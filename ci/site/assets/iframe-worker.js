// Web workers for pages that are opened from the file system, where browsers start none: the script of a worker runs in a
// hidden frame instead. The search of the site needs no more of a worker than messages and importScripts.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super()
      const url = new URL(script, location.href)
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const scope = this.frame.contentWindow
      this.ready = new Promise(resolve => {
        const page = this.frame.contentDocument
        scope.postMessage = data => {
          const message = new MessageEvent("message", { data })
          this.dispatchEvent(message)
          if (typeof this.onmessage === "function") this.onmessage(message)
        }
        scope.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve())
        const load = one => new Promise((done, failed) => {
          const script = page.createElement("script")
          script.src = new URL(one, url).href
          script.onload = done
          script.onerror = failed
          page.body.append(script)
        })
        load(url).then(resolve)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}

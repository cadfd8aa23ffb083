// Command site writes the lab's page as static files, with the simulator as WebAssembly in
// place of a server: see make lab-site. Built with GOOS=js GOARCH=wasm, the same package is
// that simulator.
//
// It starts no goroutines. In a browser its functions are called by simulator.js, one at a
// time; the page's bounds (package page) hold there, too.
package main

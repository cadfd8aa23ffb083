// Package page is the page on which runs are played: its files (web/), the runs that it
// may ask for, and the list of commands from which it builds its form. It is the same
// whether a server answers the page (package serve) or a simulator that is compiled for
// the browser (package site).
//
// It reads no files, opens no sockets and starts no goroutines. The modules in web/ decide what
// is drawn, and how: main.js puts them together, player.js has the moment that is shown,
// simulator.js asks for runs, and each of the others draws one view.
package page

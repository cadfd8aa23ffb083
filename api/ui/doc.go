// Package ui is the dashboard: the files of a page at /ui/ that shows and changes the ensemble from a browser
// (docs/dashboard.md, ADR 0022). Everything that the page knows and does goes through the HTTP API like any other
// client's requests; this package only sends the files, which are part of the program, and says by a
// Content-Security-Policy that the page asks no other server.
//
// The page is ES modules, written and served as they are in web; web/vendor has other people's code, which its README
// names. There is no build step.
//
// It has no state and starts no goroutine.
package ui

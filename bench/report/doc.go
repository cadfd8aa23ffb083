// Package report renders the results of package load: as a table of text, as JSON, and as one
// HTML page with SVG plots that fetches nothing.
//
// It measures nothing and compares nothing (bench/compare does). The same
// results give the same bytes.
package report

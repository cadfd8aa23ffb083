// Package chart draws runs of the simulator: as a message-sequence chart in
// text of bounded width, as an SVG picture, and as one HTML page that steps
// through the run with script of its own and nothing fetched. It also draws the
// line plots of the documentation.
//
// It runs nothing and judges nothing; the same records give the same bytes.
package chart

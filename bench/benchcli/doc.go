// Package benchcli is the command "zk-lite bench": flags of package load, live progress on
// standard error, and the result in the requested form.
//
// It measures nothing itself (package load does) and renders nothing (package
// report does).
package benchcli

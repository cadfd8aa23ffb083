// Package clients runs other people's clients, each in several versions, against zk-lite, and keeps what came of it:
// results.txt has a line for each client, version and transport, and docs/reference/clients.md is written from it. It
// has no code but tests. What runs the clients has the tag clients; that the page is the recorded results is tested
// without. The programs are in the directories named after languages, and in integration/interop.
package clients

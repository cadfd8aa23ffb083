// Package znodes is a znode service for the simulator: one process that keeps
// ephemeral sequential znodes under one parent, their sessions and one-shot
// watches, and the client half that election and lock recipes build on.
//
// It is not the service of this repository and shares no code with it. It has
// what the recipes need and no more: create, delete, children, exists with a
// watch, sessions that expire. The one process stands for a replicated ensemble
// and therefore never crashes.
package znodes

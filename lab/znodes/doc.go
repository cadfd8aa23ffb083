// Package znodes is a znode service for the simulator: one process that keeps
// ephemeral sequential znodes under one parent, their sessions and one-shot
// watches, and the client half that election and lock recipes build on.
//
// It shares no code with package znode. A step of the simulator is a pure function: it is
// repeated and compared with itself, and explored again from the state before; a znode.Tree is
// changed in place. The package has only what the recipes need: create, delete, children,
// exists with a watch, sessions that expire. The one process represents a replicated ensemble
// and therefore never crashes.
package znodes

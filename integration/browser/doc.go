// Package browser tests the dashboard of real servers (ui_*_test.go) and the lab's page
// in a real Chromium, headless, which the tests drive over its debugging protocol: every
// click, a walk by keyboard alone, axe-core's rules of WCAG 2.1 AA, narrow windows, and that
// no request leaves the page's origin. It makes the pictures in docs with -update.
//
// It is a module of its own, so that zk-lite needs nothing of a browser. It needs Debian's
// package chromium, and fails without it.
package browser

// A program for `zk-lite lab judge`: one process of an election or of a lock. It answers every event, and does nothing
// yet: fill in the methods. Build it with: javac Program.java, and judge it with: -- java Program

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class Program {
    // An event is an object of JSON: Map, List, String, Double, Boolean or null.
    final Map<String, Object> init;
    final int me;
    final List<Object> ids; // all processes, ascending: numbers

    Program(Map<String, Object> init) {
        this.init = init;
        me = number(init.get("self"));
        ids = (List<Object>) init.get("ids");
    }

    /** Begin an election; those in e.get("suspected") are down. */
    void elect(Map<String, Object> e, Answer out) {
        // TODO: such as out.send(to, "election", null), or out.leader(me)
    }

    /** Ask for the critical section. */
    void request(Map<String, Object> e, Answer out) {
        // TODO: such as a message to all others; out.set("enter", true) once it may enter
    }

    /** Leave it. */
    void leave(Map<String, Object> e, Answer out) {
        out.set("exit", true);
        // TODO: let the next one in
    }

    /** A message of another process has arrived. */
    void message(Map<String, Object> e, Answer out) {
        // TODO: by e.get("type"), from number(e.get("from")), with e.get("body")
    }

    /** A timer has run out; out.timer(name, after) sets one. */
    void timeout(Map<String, Object> e, Answer out) {
        // TODO: by e.get("name")
    }

    /** The process number(e.get("id")) has crashed. */
    void suspect(Map<String, Object> e, Answer out) {
        // TODO: begin an election if it was the leader
    }

    void step(Map<String, Object> e, Answer out) {
        switch ((String) e.get("event")) {
            case "elect": elect(e, out); break;
            case "request": request(e, out); break;
            case "leave": leave(e, out); break;
            case "message": message(e, out); break;
            case "timeout": timeout(e, out); break;
            case "suspect": suspect(e, out); break;
            default: // start, trust and recover need nothing yet
        }
    }

    public static void main(String[] words) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Program program = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> e = (Map<String, Object>) new Reader(line).value();
            Answer out = new Answer();
            if ("init".equals(e.get("event"))) {
                program = new Program(e); // forget everything
            } else {
                program.step(e, out);
            }
            System.out.println(write(out.parts));
            System.out.flush();
        }
    }

    static int number(Object value) {
        return ((Double) value).intValue();
    }

    /** What the process does at a moment. */
    static class Answer {
        final Map<String, Object> parts = new LinkedHashMap<>();

        void set(String key, Object value) {
            parts.put(key, value);
        }

        void leader(int id) {
            set("leader", id);
        }

        void send(int to, String type, Object body) {
            Map<String, Object> message = new LinkedHashMap<>();
            message.put("to", to);
            message.put("type", type);
            message.put("body", body);
            list("send").add(message);
        }

        void timer(String name, double after) {
            Map<String, Object> timer = new LinkedHashMap<>();
            timer.put("name", name);
            timer.put("after", after);
            list("timers").add(timer);
        }

        private List<Object> list(String key) {
            return (List<Object>) parts.computeIfAbsent(key, k -> new ArrayList<Object>());
        }
    }

    /** Writes JSON. */
    static String write(Object value) {
        List<String> parts = new ArrayList<>();
        if (value instanceof Map) {
            ((Map<String, Object>) value).forEach((k, v) -> parts.add(write(k) + ":" + write(v)));
            return "{" + String.join(",", parts) + "}";
        }
        if (value instanceof List) {
            ((List<Object>) value).forEach(v -> parts.add(write(v)));
            return "[" + String.join(",", parts) + "]";
        }
        if (!(value instanceof String)) {
            return String.valueOf(value);
        }
        StringBuilder text = new StringBuilder("\"");
        for (char c : ((String) value).toCharArray()) {
            text.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return text.append('"').toString();
    }

    /** Reads the JSON of one event, which the judge has written well. */
    static class Reader {
        private final String text;
        private int at;

        Reader(String text) {
            this.text = text;
        }

        private boolean skip(char c) {
            while (text.charAt(at) == ' ') {
                at++;
            }
            if (text.charAt(at) != c) {
                return false;
            }
            at++;
            return true;
        }

        Object value() {
            if (skip('{')) {
                Map<String, Object> map = new LinkedHashMap<>();
                while (!skip('}')) {
                    skip(',');
                    String key = (String) value();
                    skip(':');
                    map.put(key, value());
                }
                return map;
            }
            if (skip('[')) {
                List<Object> list = new ArrayList<>();
                while (!skip(']')) {
                    skip(',');
                    list.add(value());
                }
                return list;
            }
            return skip('"') ? string() : word();
        }

        private String string() {
            StringBuilder s = new StringBuilder();
            for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
                if (c == '\\') {
                    c = text.charAt(at++);
                    if (c == 'u') {
                        c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                    } else if ("bfnrt".indexOf(c) >= 0) {
                        c = "\b\f\n\r\t".charAt("bfnrt".indexOf(c));
                    }
                }
                s.append(c);
            }
            return s.toString();
        }

        private Object word() {
            int from = at;
            while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(from, at);
            switch (word) {
                case "true": return true;
                case "false": return false;
                case "null": return null;
                default: return Double.valueOf(word);
            }
        }
    }
}

import java.net.InetAddress;
import java.net.UnknownHostException;

/** Looks names up with Java's resolver: one line for each, with its addresses. */
public class Resolve {
  public static void main(String[] names) {
    for (String name : names) {
      StringBuilder line = new StringBuilder(name);
      try {
        for (InetAddress each : InetAddress.getAllByName(name))
          line.append(' ').append(each.getHostAddress());
      } catch (UnknownHostException error) {
        line.append(error.getMessage().endsWith("Name or service not known") ? " not found" : " " + error);
      }
      System.out.println(line);
    }
  }
}
